/** Preloaded into a process to print its peak memory at its end. */
import { peakMemory } from './measurement.ts';

process.once('exit', () => console.error(`peak memory ${peakMemory()} bytes`));
