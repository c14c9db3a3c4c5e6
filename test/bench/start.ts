import { alternate, printMeasurement, timeOf } from './measurement.ts';
import { CLI, peakOfNode, runNode } from './processes.ts';

const ROUNDS = 41;

const pairs = await alternate(ROUNDS, {
  floor: () => timeOf(() => runNode('-e', '0')),
  ours: () => timeOf(() => runNode(CLI, '--version')),
});
printMeasurement({ pairs, peakBytes: peakOfNode(CLI, '--version') });
