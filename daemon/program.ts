import { resolve } from 'node:path';

/**
 * V8 flags that save a quarter of the daemon's memory: it computes too little to need optimized code.
 * They must be arguments, because NODE_OPTIONS does not accept them.
 */
const NODE_OPTIONS = [
  '--no-opt',
  '--no-maglev',
  '--no-sparkplug',
  '--optimize-for-size',
  '--max-semi-space-size=1',
];

/** Returns program and arguments for running the CLI as a daemon, to be followed by the verb. */
export function daemonProgram(): readonly [node: string, ...args: string[]] {
  return [process.execPath, ...NODE_OPTIONS, resolve(process.argv[1]!)];
}
