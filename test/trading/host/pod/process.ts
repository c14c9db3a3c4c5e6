/** `node process.ts CONFIG DIRECTORY`: a runner in a process of its own, to be killed. */
import assert from 'node:assert/strict';
import { runInProcess } from './world.ts';

const [config, directory] = process.argv.slice(2);
assert(config !== undefined && directory !== undefined);
await runInProcess(config, directory).done;
