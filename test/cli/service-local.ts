import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

/** The CLI as it is in the repository; Node runs it without a build. */
export const BIN = join(import.meta.dirname, '../../bin/service-local.ts');

/** What every process needs. */
export const BASIC_ENV = {
  PATH: process.env['PATH'],
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
};

export interface RunOptions {
  /** An empty directory by default. */
  readonly cwd?: string;
  /** Added to an environment of only `BASIC_ENV`, HOME and SERVICE_LOCAL_HOME. */
  readonly env?: Readonly<Record<string, string>>;
  /** Standard input; empty by default. */
  readonly input?: string;
  /** Number of the user that it runs as; only root can choose. */
  readonly uid?: number;
}

export interface Result {
  /** `null` when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs the CLI as a child process, out of reach of the files and variables of whoever runs the
 * tests: its home is a new directory, gone when it ends.
 */
export function serviceLocal(args: readonly string[], options: RunOptions = {}): Promise<Result> {
  return runNode([BIN, ...args], options);
}

/** The same for any arguments of Node. */
export async function runNode(
  args: readonly string[],
  { cwd, env, input = '', uid }: RunOptions = {},
): Promise<Result> {
  const home = await mkdtemp(join(tmpdir(), 'service-local-home-'));
  try {
    const child = spawn(process.execPath, args, {
      cwd: cwd ?? home,
      ...(uid !== undefined && { uid }),
      env: {
        ...BASIC_ENV,
        HOME: home,
        SERVICE_LOCAL_HOME: join(home, '.service-local'),
        ...env,
      },
    });
    // A child that ends without reading its input breaks the pipe; its exit code says why it ended.
    child.stdin.on('error', () => {});
    child.stdin.end(input);
    const [code, stdout, stderr] = await Promise.all([
      new Promise<number | null>((resolve, reject) => {
        child.on('error', reject);
        child.on('close', resolve);
      }),
      text(child.stdout),
      text(child.stderr),
    ]);
    return { code, stdout, stderr };
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}
