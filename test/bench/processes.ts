import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Measurement } from './measurement.ts';

/** The compiled CLI, which users start. */
export const CLI = join(import.meta.dirname, '../../dist/bin/service-local.js');

/** Home of the measured processes, so that they add no trials to the ledger of the developer. */
const home = mkdtempSync(join(tmpdir(), 'service-local-bench-home-'));
process.once('exit', () => rmSync(home, { recursive: true, force: true }));
const env = { ...process.env, SERVICE_LOCAL_HOME: home };

/**
 * Runs Node with the arguments.
 *
 * @returns the output of the process
 * @throws Error with its standard error if it fails
 */
export function runNode(...args: readonly string[]): { stdout: string; stderr: string } {
  const { stdout, stderr, status } = spawnSync(process.execPath, args, { encoding: 'utf8', env });
  if (status !== 0) throw new Error(stderr);
  return { stdout, stderr };
}

/** Runs it once more, because the preloaded module would add to the time of a measured process. */
export function peakOfNode(...args: readonly string[]): number {
  const { stderr } = runNode('--import', join(import.meta.dirname, 'print-peak.ts'), ...args);
  return Number(/peak memory (\d+) bytes/.exec(stderr)![1]);
}

/** Runs the script of a row. */
export function measureIn(script: string, ...args: readonly string[]): Measurement {
  return JSON.parse(runNode(join(import.meta.dirname, script), ...args).stdout) as Measurement;
}
