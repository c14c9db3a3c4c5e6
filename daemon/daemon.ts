import { holdLock, type Lock } from '../src/client/lock.ts';
import { ServiceError } from '../src/errors.ts';
import { systemBoot } from '../src/gate/boot.ts';
import { watchFiles } from '../src/gate/watch.ts';
import { licenseFiles, type LicenseFiles } from '../src/license-files.ts';
import { createLog, lineForPeople, type Log } from '../src/log.ts';
import type { Settings } from '../src/settings.ts';
import { packageVersion } from '../src/version.ts';
import { daemonFiles, type DaemonFiles } from './files.ts';
import { appendLine } from './log-file.ts';
import { runLoop, type Subscribe, type Tick } from './loop.ts';
import { openNotifier } from './notify.ts';
import { readState, writeState, type DaemonState } from './state.ts';
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

/** For those who change the license just now: they make few requests. */
const START_PATIENCE_MS = 10_000;
/** What is noted at the end is worth no delay: who looks sees by the lock that it has ended. */
const END_PATIENCE_MS = 300;

/**
 * Keeps the license of this machine fresh until the signal is aborted. SIGHUP has it look at once.
 *
 * @throws ServiceError `conflict`, reason `locked`, where another daemon does that for this home;
 * what `writePrivateFile` throws, where it cannot leave a note of who it is.
 */
export async function runDaemon(
  { home, server_url: url }: Pick<Settings, 'home' | 'server_url'>,
  env: NodeJS.ProcessEnv,
  { signal, tell, json, onReady }: DaemonOptions,
): Promise<void> {
  // Without a listener it would end this process.
  process.on('SIGHUP', () => {});
  const files = licenseFiles(home, env);
  const own = daemonFiles(home);
  const lock = await holdDaemonLock(own, files);
  try {
    const daemon = {
      pid: process.pid,
      version: packageVersion(),
      started_at: new Date().toISOString(),
      stopped_at: null,
      server_url: url,
    };
    await noteDaemon(files, daemon, START_PATIENCE_MS);
    const log = openLog(own, tell, json);
    process.on('uncaughtExceptionMonitor', (err) => log.error({ err }, BROKEN));
    const warn = (text: string): void => log.warn(text);
    const supervision = await superviseBy(env, warn, signal);
    log.info({ pid: process.pid, version: daemon.version }, `keeping ${files.lease} fresh`);
    const { watch, unwatch } = await watchLicense(files, warn);
    const machine = { files, url, clock: Date.now, boot: systemBoot, random: Math.random, warn };
    onReady();
    try {
      const { onTick } = supervision;
      await runLoop(machine, { signal, log, wake: onHangUp, watch, onTick });
    } catch (err) {
      log.error({ err }, BROKEN);
      throw err;
    } finally {
      supervision.end();
      await unwatch();
    }
    const stopped = { ...daemon, stopped_at: new Date().toISOString() };
    await noteDaemon(files, stopped, END_PATIENCE_MS).catch((err: unknown) =>
      log.warn({ err }, 'that it stopped is not noted'),
    );
    log.info('stopped');
  } finally {
    lock.release();
  }
}

const BROKEN = 'the daemon broke';

const onHangUp: Subscribe = (call) => {
  process.on('SIGHUP', call);
  return () => process.off('SIGHUP', call);
};

async function watchLicense(
  { lease, keyset, key }: LicenseFiles,
  warn: (text: string) => void,
): Promise<{ readonly watch: Subscribe; readonly unwatch: () => Promise<void> }> {
  const callers = new Set<() => void>();
  const onEvent = (): void => callers.forEach((call) => call());
  const onError = (why: string): void =>
    warn(`changes of the license are noticed within a minute, not at once: ${why}`);
  const watcher = await watchFiles([lease, keyset, key], onEvent, onError);
  return {
    watch(call) {
      callers.add(call);
      return () => callers.delete(call);
    },
    unwatch: () => watcher.close(),
  };
}

async function holdDaemonLock({ lock }: DaemonFiles, { state }: LicenseFiles): Promise<Lock> {
  try {
    return await holdLock(lock, 0);
  } catch (error) {
    if (!(error instanceof ServiceError && error.reason === 'locked')) throw error;
    const { daemon } = await readState(state);
    const who = daemon === null ? '' : `, as the process ${daemon.pid}`;
    throw new ServiceError('conflict', `a daemon runs for this home already${who}`, {
      reason: 'locked',
      remedy: 'See `service-local daemon status`, or stop it with `service-local daemon stop`.',
      cause: error,
    });
  }
}

/** Leaves a note in the state: by it others know whom to signal. */
async function noteDaemon(
  files: LicenseFiles,
  daemon: DaemonState['daemon'],
  waitMs: number,
): Promise<void> {
  const lock = await holdLock(files.lock, waitMs);
  try {
    await writeState(files.state, { ...(await readState(files.state)), daemon });
  } finally {
    lock.release();
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
      say(`STATUS=${held}; ${nextAttempt(state)}`);
    },
    end() {
      clearInterval(watchdog);
      close();
    },
  };
}
