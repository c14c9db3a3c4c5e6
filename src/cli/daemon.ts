import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import { daemonFiles } from '../../daemon/daemon-files.ts';
import { daemonProgram } from '../../daemon/program.ts';
import { serviceEnvironment } from '../../daemon/service-unit.ts';
import { locateProcess, findDaemon, type DaemonNote } from '../../daemon/note.ts';
import { readState, type DaemonState } from '../../daemon/daemon-state.ts';
import { refuseInsecure } from '../client/insecure-http.ts';
import { ServiceError, type ErrorCode } from '../base/errors.ts';
import { isSystemError } from '../base/system-errors.ts';
import { licenseFiles } from '../gate/license-files.ts';
import { makeDirectory } from '../base/make-directory.ts';
import type { Settings } from '../base/settings.ts';

export interface DaemonView {
  readonly isRunning: boolean;
  /** Identity of the daemon, or of the last one if none runs; undefined if unknown. */
  readonly note: DaemonNote | undefined;
  readonly state: DaemonState;
}

export async function viewDaemon(home: string, env: NodeJS.ProcessEnv): Promise<DaemonView> {
  const { isRunning, note: last } = await findDaemon(daemonFiles(home));
  const isIt = last !== undefined && last.stopped_at === null && locateProcess(last) !== 'gone';
  return {
    isRunning,
    note: isIt || !isRunning ? last : undefined,
    state: await readState(licenseFiles(home, env).state),
  };
}

/** Time that a daemon may take to start or stop on a busy machine. */
const PATIENCE_MS = 30_000;
const LOOK_AGAIN_MS = 25;

/**
 * Starts a daemon in the background.
 * @returns its process id once it works; undefined if a daemon is already running.
 * @throws ServiceError with the reason why it did not start
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
    // The daemon runs in another directory, so it needs absolute paths.
    env: { ...inherited, ...serviceEnvironment(env).environment, SERVICE_LOCAL_HOME: home },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  const { stdout, stderr } = child;
  const timer = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS);
  try {
    const ending = Promise.all([text(stdout!), text(stderr!), once(child, 'close')]);
    const ended = await Promise.race([once(child, 'message').then(() => undefined), ending]);
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

/** Returns the error on stdout or, without one, the last line on stderr. */
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
    return new ServiceError(
      'failure',
      `the daemon did not start: ${last || 'it printed nothing'}`,
      {
        remedy: 'Run `service-local daemon run` to see its messages.',
      },
    );
  }
}

interface ErrorDocument {
  readonly code: ErrorCode;
  readonly message: string;
  readonly reason: string | null;
  readonly remedy: string | null;
}

/** Until a new daemon has written its note, the note of an earlier one may name another machine. */
const NEWCOMER_MS = 2000;

/**
 * Stops the running daemon.
 * @returns its process id once it has ended; undefined if none was running.
 * @throws ServiceError `not_allowed` if it belongs to another user, container or machine; `failure` if
 *   it does not stop
 */
export async function stopDaemon(home: string): Promise<number | undefined> {
  const files = daemonFiles(home);
  const begun = performance.now();
  let signalled: number | undefined;
  for (;;) {
    const { isRunning, note: last } = await findDaemon(files);
    if (!isRunning) return signalled;
    const place = last?.stopped_at === null ? locateProcess(last) : 'gone';
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
    `the daemon is process ${pid} in another container or on another machine with the same home`,
    { remedy: 'Run `service-local daemon stop` there, or stop the container.' },
  );
}

function stopTimeoutError(home: string, pid: number | undefined): ServiceError {
  const lock = daemonFiles(home).lock;
  return pid === undefined
    ? new ServiceError('failure', `no file names the process of the daemon of ${home}`, {
        remedy: `Find the process that holds the lock with \`fuser ${lock}\`, and end it. This damages no file.`,
      })
    : new ServiceError('failure', `the daemon of ${home}, process ${pid}, does not stop`, {
        remedy: `End it with \`kill -9 ${pid}\`. This damages no file.`,
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
