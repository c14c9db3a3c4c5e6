import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

/** The CLI in the repository, which Node runs without a build. */
export const BIN = join(import.meta.dirname, '../../bin/service-local.ts');

export const BASIC_ENV = {
  PATH: process.env['PATH'],
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
};

export interface RunOptions {
  /** Default: a new empty directory. */
  readonly cwd?: string;
  /** Added to `BASIC_ENV`, HOME and SERVICE_LOCAL_HOME. */
  readonly env?: Readonly<Record<string, string>>;
  /** Standard input; default empty. */
  readonly input?: string;
  /** User id of the process; needs root. */
  readonly uid?: number;
}

export interface Result {
  /** `null` if a signal ended the process. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs the CLI as a child process that does not see the files and variables of the developer. Its
 * home is a new directory, which is removed when the process ends.
 */
export function serviceLocal(args: readonly string[], options: RunOptions = {}): Promise<Result> {
  return runNode([BIN, ...args], options);
}

/** Like `serviceLocal`, with any arguments of Node. */
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
    // A child that ends without reading its input breaks the pipe; the test checks its exit code.
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
