import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { daemonFiles } from '../../daemon/files.ts';
import { daemonProgram } from '../../daemon/program.ts';
import { serviceEnvironment } from '../../daemon/service-unit.ts';
import { placeOf, seeDaemon, type DaemonNote } from '../../daemon/note.ts';
import { readState, type DaemonState } from '../../daemon/state.ts';
import { refuseInsecure } from '../client/insecure-http.ts';
import { isSystemError, ServiceError, type ErrorCode } from '../base/errors.ts';
import { licenseFiles } from '../gate/license-files.ts';
import { makeDirectory } from '../base/make-directory.ts';
import type { Settings } from '../base/settings.ts';

/** What can be seen of the daemon of a home from outside. */
export interface DaemonView {
  readonly isRunning: boolean;
  /** Who it is, or the last one was; undefined when no file says so. */
  readonly note: DaemonNote | undefined;
  readonly state: DaemonState;
}

export async function viewDaemon(home: string, env: NodeJS.ProcessEnv): Promise<DaemonView> {
  const { isRunning, note: last } = await seeDaemon(daemonFiles(home));
  const isIt = last !== undefined && last.stopped_at === null && placeOf(last) !== 'gone';
  return {
    isRunning,
    note: isIt || !isRunning ? last : undefined,
    state: await readState(licenseFiles(home, env).state),
  };
}

/** How long one may take to come up or to end on a machine that has much else to do. */
const PATIENCE_MS = 30_000;
const LOOK_AGAIN_MS = 25;

/**
 * Starts one in the background.
 * @returns its process id, once it works; undefined where one runs already.
 * @throws ServiceError why it did not come up.
 */
export async function startDaemon(
  {
    home,
    server_url,
    server_insecure: insecure,
  }: Pick<Settings, 'home' | 'server_url' | 'server_insecure'>,
  env: NodeJS.ProcessEnv,
): Promise<number | undefined> {
  refuseInsecure(server_url, insecure);
  makeDirectory(home, 0o700);
  const { NOTIFY_SOCKET: _, ...inherited } = env;
  const words = ['daemon', 'run', '--quiet', '--json', '--url', server_url];
  if (insecure) words.push('--insecure');
  const [node, ...args] = daemonProgram();
  const child = spawn(node, [...args, ...words], {
    cwd: home,
    // It runs in another directory: paths that are relative to this one mean nothing there.
    env: { ...inherited, ...serviceEnvironment(env).environment, SERVICE_LOCAL_HOME: home },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const { stdout, stderr } = child;
  const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
  try {
    const told = Promise.all([text(stdout!), text(stderr!), once(child, 'close')]);
    const ended = await Promise.race([once(child, 'message').then(() => undefined), told]);
    if (ended !== undefined) {
      const why = parseStartFailure(ended[0], ended[1]);
      if (why.reason === 'locked') return undefined;
      throw why;
    }
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
function parseStartFailure(stdout: string, stderr: string): ServiceError {
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

/** One that has just been started has not said who it is, and the last one may have been elsewhere. */
const NEWCOMER_MS = 2000;

/**
 * Ends the one that runs.
 * @returns the process id that it had, once it is gone; undefined when none runs.
 * @throws ServiceError `not_allowed` for that of another user, or of another container or machine;
 * `failure` where it does not end.
 */
export async function stopDaemon(home: string): Promise<number | undefined> {
  const files = daemonFiles(home);
  const begun = performance.now();
  let signalled: number | undefined;
  for (;;) {
    const { isRunning, note: last } = await seeDaemon(files);
    if (!isRunning) return signalled;
    const place = last?.stopped_at === null ? placeOf(last) : 'gone';
    if (last !== undefined && place === 'here' && last.pid !== signalled) {
      terminate(last.pid);
      signalled = last.pid;
    }
    const passed = performance.now() - begun;
    if (last !== undefined && place === 'elsewhere' && passed > NEWCOMER_MS)
      throw elsewhereError(last);
    if (passed > PATIENCE_MS) throw stopTimeoutError(home, signalled);
    await wait(LOOK_AGAIN_MS);
  }
}

function elsewhereError({ pid }: DaemonNote): ServiceError {
  return new ServiceError(
    'not_allowed',
    `the daemon is the process ${pid} of another container or machine that has the same home`,
    { remedy: 'Run `service-local daemon stop` there, or stop the container.' },
  );
}

function stopTimeoutError(home: string, pid: number | undefined): ServiceError {
  const lock = daemonFiles(home).lock;
  return pid === undefined
    ? new ServiceError('failure', `which process the daemon of ${home} is, no file says`, {
        remedy: `See with \`fuser ${lock}\` who holds its lock: to end that process harms no file.`,
      })
    : new ServiceError('failure', `the daemon of ${home}, the process ${pid}, does not end`, {
        remedy: `\`kill -9 ${pid}\` harms no file.`,
      });
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
