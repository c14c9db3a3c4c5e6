import { refuseInsecure } from '../src/client/insecure-http.ts';
import { holdLock, type Lock } from '../src/base/file-lock.ts';
import { ServiceError } from '../src/base/errors.ts';
import { systemBoot } from '../src/gate/boot.ts';
import { watchFiles } from '../src/gate/watch.ts';
import { licenseFiles } from '../src/gate/license-files.ts';
import { createLog, lineForPeople, type Log } from '../src/base/log.ts';
import type { Settings } from '../src/base/settings.ts';
import { deniedSince } from './denial.ts';
import { daemonFiles, type DaemonFiles } from './daemon-files.ts';
import { appendLine } from './log-file.ts';
import { runLoop, type Subscribe, type Tick } from './loop.ts';
import { newNote, readNote, writeNote, type DaemonNote } from './note.ts';
import { openNotifier } from './notify.ts';
import { describeNextAttempt } from './next-attempt.ts';

export interface DaemonOptions {
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
  readonly json: boolean;
  readonly onReady: () => void;
}

/**
 * Renews the lease of this machine until the signal is aborted. SIGHUP triggers a check at once.
 *
 * @throws ServiceError `conflict`, reason `locked`, if another daemon runs for this home; `failure`,
 * reason `lock_lost`, if the lock file was replaced, so that another daemon could start; `invalid_data`
 * with a reason if other users can write to the home.
 */
export async function runDaemon(
  {
    home,
    server_url: url,
    server_insecure: insecure,
  }: Pick<Settings, 'home' | 'server_url' | 'server_insecure'>,
  env: NodeJS.ProcessEnv,
  { signal, print, json, onReady }: DaemonOptions,
): Promise<void> {
  refuseInsecure(url, insecure);
  // Without a listener, SIGHUP would end this process.
  process.on('SIGHUP', () => {});
  const files = licenseFiles(home, env);
  const own = daemonFiles(home);
  const lock = await holdDaemonLock(own);
  try {
    const note = newNote(url, files.pin);
    const log = openLog(own, print, json);
    const warn = (text: string): void => log.warn(text);
    await beginNote(own.note, note);
    process.on('uncaughtExceptionMonitor', (err) => log.error({ err }, BROKEN));
    let failure: string | undefined;
    const leaveNote = async (text: DaemonNote): Promise<void> => {
      try {
        await writeNote(own.note, text);
        failure = undefined;
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        if (error.message !== failure) warn(`${own.note} could not be written: ${error.message}`);
        failure = error.message;
      }
    };
    const supervision = await notifySupervisor(env, warn, signal);
    let watching: Watching | undefined;
    try {
      const { pid, version } = note;
      log.info({ pid, version }, `renewing ${files.lease} from ${url}`);
      watching = await watchFor([files.lease, files.keyset, files.root, files.key, own.note], warn);
      const machine = {
        files,
        url,
        insecure,
        clock: Date.now,
        boot: systemBoot,
        random: Math.random,
        warn,
      };
      onReady();
      await runLoop(machine, {
        signal,
        log,
        wake: onHangUp,
        watch: watching.watch,
        onTick: supervision.onTick,
        async beforeCheck() {
          if (!lock.isInPlace()) throw lostLock(own.lock);
          const left = await readNote(own.note);
          if (left?.started_at !== note.started_at) await leaveNote(note);
        },
      });
    } catch (err) {
      if (err instanceof ServiceError)
        log.error({ code: err.code }, `the daemon ends: ${err.message}`);
      else log.error({ err }, BROKEN);
      throw err;
    } finally {
      supervision.end();
      await watching?.unwatch();
    }
    await leaveNote({ ...note, stopped_at: new Date().toISOString() });
    log.info('stopped');
  } finally {
    lock.release();
  }
}

const BROKEN = 'the daemon ends after an unexpected error';

/** @throws ServiceError `invalid_data` if other users can write to the directory */
async function beginNote(path: string, note: DaemonNote): Promise<void> {
  try {
    await writeNote(path, note);
  } catch (error) {
    // The daemon also works without the note, which only `daemon stop` needs; each check tries again.
    if (!(error instanceof ServiceError && error.code === 'output_not_writable')) throw error;
  }
}

function lostLock(path: string): ServiceError {
  return new ServiceError(
    'failure',
    `${path} was removed or replaced, so another daemon could start`,
    {
      reason: 'lock_lost',
      remedy: 'Start the daemon again with `service-local daemon start`.',
    },
  );
}

const onHangUp: Subscribe = (call) => {
  process.on('SIGHUP', call);
  return () => process.off('SIGHUP', call);
};

interface Watching {
  readonly watch: Subscribe;
  readonly unwatch: () => Promise<void>;
}

async function watchFor(paths: readonly string[], warn: (text: string) => void): Promise<Watching> {
  const callers = new Set<() => void>();
  const onEvent = (): void => callers.forEach((call) => call());
  const onError = (why: string): void =>
    warn(`changes of the license files are noticed within a minute, not at once: ${why}`);
  const watcher = await watchFiles(paths, onEvent, onError);
  return {
    watch(call) {
      callers.add(call);
      return () => callers.delete(call);
    },
    unwatch: () => watcher.close(),
  };
}

async function holdDaemonLock({ lock, note }: DaemonFiles): Promise<Lock> {
  try {
    return await holdLock(lock, 0);
  } catch (error) {
    if (!(error instanceof ServiceError && error.reason === 'locked')) throw error;
    const last = await readNote(note);
    const who = last?.stopped_at === null ? `, as process ${last.pid}` : '';
    throw new ServiceError('conflict', `a daemon already runs for this home${who}`, {
      reason: 'locked',
      remedy:
        'Check it with `service-local daemon status`, or stop it with `service-local daemon stop`.',
      cause: error,
    });
  }
}

/** Logs to the file and to `print`. */
function openLog(files: DaemonFiles, print: (line: string) => void, json: boolean): Log {
  let failing: string | undefined;
  return createLog((line) => {
    print(json ? line : lineForPeople(line));
    const error = appendLine(files, line);
    if (error !== undefined && error !== failing)
      print(`warn: the log file could not be written: ${error}`);
    failing = error;
  }, true);
}

interface Supervision {
  readonly onTick: (tick: Tick) => void;
  readonly end: () => void;
}

/** Longer than one check with all its requests takes. */
const LONGEST_CHECK_MS = 5 * 60_000;

/** Reports start, status and end of the daemon to a service manager, if one started it. */
async function notifySupervisor(
  env: NodeJS.ProcessEnv,
  warn: (text: string) => void,
  signal: AbortSignal,
): Promise<Supervision> {
  const notifier = await openNotifier(env, warn);
  if (notifier === undefined) return { onTick() {}, end() {} };
  const { notify, watchdogMs, close } = notifier;
  let checkedAt = performance.now();
  // A running timer does not prove that the loop runs.
  const watchdog =
    watchdogMs &&
    setInterval(() => {
      if (performance.now() - checkedAt < LONGEST_CHECK_MS) notify('WATCHDOG=1');
    }, watchdogMs / 2);
  let lastStatus = '';
  notify('READY=1');
  signal.addEventListener('abort', () => notify('STOPPING=1'), { once: true });
  return {
    onTick({ state, lease, status }) {
      checkedAt = performance.now();
      const held = lease && status ? `lease ${status.state}` : 'no lease';
      const since = deniedSince(state);
      const denial = since === undefined ? '' : `the server has denied renewal since ${since}; `;
      const text = `STATUS=${held}; ${denial}${describeNextAttempt(state)}`;
      if (text !== lastStatus) notify(text);
      lastStatus = text;
    },
    end() {
      clearInterval(watchdog);
      close();
    },
  };
}
