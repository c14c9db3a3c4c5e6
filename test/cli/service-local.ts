import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The CLI's source; Node runs it as it is. */
export const BIN = join(import.meta.dirname, '../../bin/service-local.ts');

export interface RunOptions {
  readonly cwd?: string;
  /** Added to an environment that holds only PATH, HOME and SERVICE_LOCAL_HOME, both empty directories. */
  readonly env?: Readonly<Record<string, string>>;
  /** Standard input; closed at once without it. */
  readonly input?: string;
  /** Options for Node itself, such as `--import`. */
  readonly nodeOptions?: readonly string[];
}

export interface Result {
  /** `null` when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the CLI as a child process, away from the files and variables of whoever runs the tests. */
export async function serviceLocal(
  args: readonly string[],
  { cwd, env, input = '', nodeOptions = [] }: RunOptions = {},
): Promise<Result> {
  const home = await mkdtemp(join(tmpdir(), 'service-local-home-'));
  try {
    const child = spawn(process.execPath, [...nodeOptions, BIN, ...args], {
      cwd: cwd ?? home,
      env: {
        PATH: process.env['PATH'],
        HOME: home,
        SERVICE_LOCAL_HOME: join(home, '.service-local'),
        ...env,
      },
    });
    // A CLI that ends before it has read its input closes the pipe; the result tells what it did.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    const stdout: Buffer[] = [];
    const stderr: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    const code = await new Promise<number | null>((resolve, reject) => {
      child.on('error', reject);
      child.on('close', resolve);
    });
    return {
      code,
      stdout: Buffer.concat(stdout).toString(),
      stderr: Buffer.concat(stderr).toString(),
    };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}
