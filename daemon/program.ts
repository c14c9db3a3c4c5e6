import { resolve } from 'node:path';

/**
 * The daemon computes next to nothing: code that is compiled for speed, and the compilers, would
 * take a quarter of its memory. These are for V8 before it starts; NODE_OPTIONS does not take them.
 */
const NODE_OPTIONS = [
  '--no-opt',
  '--no-maglev',
  '--no-sparkplug',
  '--optimize-for-size',
  '--max-semi-space-size=1',
];

/** How to run this CLI for a daemon: program and arguments, to be followed by the verb. */
export function daemonProgram(): readonly [node: string, ...args: string[]] {
  return [process.execPath, ...NODE_OPTIONS, resolve(process.argv[1]!)];
}
