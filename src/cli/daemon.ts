import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { daemonFiles } from '../../daemon/files.ts';
import { daemonProgram } from '../../daemon/program.ts';
import { readState, type DaemonState } from '../../daemon/state.ts';
import { isLocked } from '../client/lock.ts';
import { isSystemError, ServiceError, type ErrorCode } from '../errors.ts';
import { licenseFiles } from '../license-files.ts';
import { makeDirectory } from '../make-directory.ts';
import type { Settings } from '../settings.ts';

/** What can be seen of the daemon of a home from outside. */
export interface DaemonView {
  readonly isRunning: boolean;
  readonly state: DaemonState;
}

export async function viewDaemon(home: string, env: NodeJS.ProcessEnv): Promise<DaemonView> {
  // It is locked before it says who it is, and the other way round at its end.
  const isRunning = isLocked(daemonFiles(home).lock);
  return { isRunning, state: await readState(licenseFiles(home, env).state) };
}

/** How long one may take to come up or to end on a machine that has much else to do. */
const PATIENCE_MS = 30_000;
const LOOK_AGAIN_MS = 25;

/**
 * Starts one in the background.
 * @returns its process id, once it works.
 * @throws ServiceError why it did not come up.
 */
export async function startDaemon(
  { home, server_url }: Pick<Settings, 'home' | 'server_url'>,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  makeDirectory(home, 0o700);
  const { NOTIFY_SOCKET: _, ...inherited } = env;
  const words = ['daemon', 'run', '--quiet', '--json', '--url', server_url];
  const [node, ...args] = daemonProgram();
  const child = spawn(node, [...args, ...words], {
    cwd: home,
    env: { ...inherited, SERVICE_LOCAL_HOME: home },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const { stdout, stderr } = child;
  const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
  try {
    const told = Promise.all([text(stdout!), text(stderr!), once(child, 'close')]);
    const ended = await Promise.race([once(child, 'message').then(() => undefined), told]);
    if (ended !== undefined) throw whyEnded(ended[0], ended[1]);
  } finally {
    clearTimeout(timer);
  }
  child.disconnect();
  child.unref();
  stdout!.destroy();
  stderr!.destroy();
  return child.pid!;
}

/** What it said on stdout, or how it broke. */
function whyEnded(stdout: string, stderr: string): ServiceError {
  try {
    const { error } = JSON.parse(stdout) as { error: ErrorDocument };
    const { code, message, reason, remedy } = error;
    return new ServiceError(code, message, {
      ...(reason !== null && { reason }),
      ...(remedy !== null && { remedy }),
    });
  } catch {
    const last = stderr.trim().split('\n').at(-1);
    return new ServiceError('failure', `the daemon did not come up: ${last || 'it says nothing'}`, {
      remedy: 'See what `service-local daemon run` says.',
    });
  }
}

interface ErrorDocument {
  readonly code: ErrorCode;
  readonly message: string;
  readonly reason: string | null;
  readonly remedy: string | null;
}

/**
 * Ends the one that runs.
 * @returns the process id that it had, once it is gone; undefined when none runs.
 * @throws ServiceError `not_allowed` for that of another user; `failure` where it does not end.
 */
export async function stopDaemon(
  home: string,
  env: NodeJS.ProcessEnv,
): Promise<number | undefined> {
  let signalled: number | undefined;
  const until = performance.now() + PATIENCE_MS;
  for (;;) {
    const { isRunning, state } = await viewDaemon(home, env);
    if (!isRunning) return signalled;
    const { pid, stopped_at = null } = state.daemon ?? {};
    // One that has just been started may not have said yet who it is.
    if (pid !== undefined && stopped_at === null && pid !== signalled) {
      terminate(pid);
      signalled = pid;
    }
    if (performance.now() > until) {
      throw new ServiceError('failure', `the daemon of ${home} does not end`, {
        remedy: 'See `service-local daemon status`; to kill it with `kill -9` harms no file.',
      });
    }
    await wait(LOOK_AGAIN_MS);
  }
}

function terminate(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM');
  } catch (error) {
    if (isSystemError(error, 'ESRCH')) return;
    if (!isSystemError(error, 'EPERM')) throw error;
    throw new ServiceError('not_allowed', `the process ${pid} belongs to another user`, {
      remedy: 'Stop it as that user.',
      cause: error,
    });
  }
}
