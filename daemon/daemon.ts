import { refuseInsecure } from '../src/client/insecure-http.ts';
import { holdLock, type Lock } from '../src/client/lock.ts';
import { ServiceError } from '../src/base/errors.ts';
import { systemBoot } from '../src/gate/boot.ts';
import { watchFiles } from '../src/gate/watch.ts';
import { licenseFiles } from '../src/gate/license-files.ts';
import { createLog, lineForPeople, type Log } from '../src/base/log.ts';
import type { Settings } from '../src/base/settings.ts';
import { deniedSince } from './denial.ts';
import { daemonFiles, type DaemonFiles } from './files.ts';
import { appendLine } from './log-file.ts';
import { runLoop, type Subscribe, type Tick } from './loop.ts';
import { newNote, readNote, writeNote, type DaemonNote } from './note.ts';
import { openNotifier } from './notify.ts';
import { nextAttempt } from './words.ts';

export interface DaemonOptions {
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Shown each line of the log. */
  readonly tell: (line: string) => void;
  /** Whether these are JSON objects, or texts for people. */
  readonly json: boolean;
  /** Called when it has begun its work. */
  readonly onReady: () => void;
}

/**
 * Keeps the license of this machine fresh until the signal is aborted. SIGHUP has it look at once.
 *
 * @throws ServiceError `conflict`, reason `locked`, where another daemon does that for this home;
 * reason `lock_lost`, where another could from now on; `invalid_data` with a reason where others
 * could put files of theirs into the home.
 */
export async function runDaemon(
  {
    home,
    server_url: url,
    server_insecure: insecure,
  }: Pick<Settings, 'home' | 'server_url' | 'server_insecure'>,
  env: NodeJS.ProcessEnv,
  { signal, tell, json, onReady }: DaemonOptions,
): Promise<void> {
  refuseInsecure(url, insecure);
  // Without a listener it would end this process.
  process.on('SIGHUP', () => {});
  const files = licenseFiles(home, env);
  const own = daemonFiles(home);
  const lock = await holdDaemonLock(own);
  try {
    const note = newNote(url, files.pin);
    const log = openLog(own, tell, json);
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
        if (error.message !== failure) warn(`who the daemon is cannot be noted: ${error.message}`);
        failure = error.message;
      }
    };
    const supervision = await superviseBy(env, warn, signal);
    let watching: Watching | undefined;
    try {
      const { pid, version } = note;
      log.info({ pid, version }, `keeping ${files.lease} fresh, with leases of ${url}`);
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
        async beforeLook() {
          if (!lock.isInPlace()) throw lostLock(own.lock);
          const left = await readNote(own.note);
          if (left?.started_at !== note.started_at) await leaveNote(note);
        },
      });
    } catch (err) {
      if (err instanceof ServiceError) log.error({ code: err.code }, `it ends: ${err.message}`);
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

const BROKEN = 'the daemon broke';

/** @throws ServiceError `invalid_data` where others could put files of theirs beside it */
async function beginNote(path: string, note: DaemonNote): Promise<void> {
  try {
    await writeNote(path, note);
  } catch (error) {
    // Without a note it works as well, but is not as easily stopped: it is tried again at each look.
    if (!(error instanceof ServiceError && error.code === 'output_not_writable')) throw error;
  }
}

function lostLock(path: string): ServiceError {
  return new ServiceError('failure', `${path} is not the file any more that this daemon locked`, {
    reason: 'lock_lost',
    remedy: 'Start it again with `service-local daemon start`.',
  });
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
    warn(`changes of the license are noticed within a minute, not at once: ${why}`);
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
    const who = last?.stopped_at === null ? `, as the process ${last.pid}` : '';
    throw new ServiceError('conflict', `a daemon runs for this home already${who}`, {
      reason: 'locked',
      remedy: 'See `service-local daemon status`, or stop it with `service-local daemon stop`.',
      cause: error,
    });
  }
}

/** A log in the file and before whoever watches. */
function openLog(files: DaemonFiles, tell: (line: string) => void, json: boolean): Log {
  let failing: string | undefined;
  return createLog((line) => {
    tell(json ? line : lineForPeople(line));
    const error = appendLine(files, line);
    if (error !== undefined && error !== failing) tell(`warn: the log is not kept: ${error}`);
    failing = error;
  }, true);
}

interface Supervision {
  readonly onTick: (tick: Tick) => void;
  readonly end: () => void;
}

/** One look, with the requests that it may make, takes less. */
const LONGEST_LOOK_MS = 5 * 60_000;

/** Tells a service manager, where there is one, that this runs, how, and that it is about to end. */
async function superviseBy(
  env: NodeJS.ProcessEnv,
  warn: (text: string) => void,
  signal: AbortSignal,
): Promise<Supervision> {
  const notifier = await openNotifier(env, warn);
  if (notifier === undefined) return { onTick() {}, end() {} };
  const { notify, watchdogMs, close } = notifier;
  let looked = performance.now();
  // That timers run does not show that the loop does.
  const watchdog =
    watchdogMs &&
    setInterval(() => {
      if (performance.now() - looked < LONGEST_LOOK_MS) notify('WATCHDOG=1');
    }, watchdogMs / 2);
  let said = '';
  const say = (what: string): void => {
    if (what !== said) notify(what);
    said = what;
  };
  notify('READY=1');
  signal.addEventListener('abort', () => notify('STOPPING=1'), { once: true });
  return {
    onTick({ state, lease, status }) {
      looked = performance.now();
      const held = lease && status ? `lease ${status.state}` : 'no lease';
      const since = deniedSince(state);
      const denial = since === undefined ? '' : `the server denies renewal since ${since}; `;
      say(`STATUS=${held}; ${denial}${nextAttempt(state)}`);
    },
    end() {
      clearInterval(watchdog);
      close();
    },
  };
}
