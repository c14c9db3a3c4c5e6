import { execFile } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, isAbsolute } from 'node:path';
import { promisify } from 'node:util';
import { serviceManager, type ServiceManager } from '../../../daemon/service-unit.ts';
import { nextAttempt } from '../../../daemon/words.ts';
import { isSystemError } from '../../base/errors.ts';
import { formatCountOf, formatSpan } from '../../base/format.ts';
import { renewalMoment } from '../../lease/schedule.ts';
import { formatTime } from '../../lease/time.ts';
import { packageVersion } from '../../base/version.ts';
import type { Check } from '../check.ts';
import type { Facts } from '../facts.ts';
import { BRING } from './license.ts';

const START =
  'Start it with `service-local daemon start`, or have it started with the machine by `daemon install`.';

const daemon: Check<Facts> = {
  code: 'daemon',
  needs: ['device_key'],
  blames: ['home', 'runtime'],
  async look({ url, urlBy, isBrought, isDaemonRunning, note, state }) {
    const running = await isDaemonRunning();
    const last = await note();
    const evidence = { running, last: last ?? null };
    if (!running && urlBy === 'default' && (await isBrought())) {
      const summary = 'none has ever run here: the lease is renewed by hand';
      return { status: 'ok', summary, evidence, remedy: `${BRING} Do so before it is due.` };
    }
    if (!running) {
      const isKilled = last?.stopped_at === null;
      const summary = `it does not run${isKilled ? ', and was killed' : ''}: nobody renews the lease`;
      return { status: 'warn', summary, evidence, remedy: START };
    }
    const { unrepaired } = await state();
    if (unrepaired !== null) {
      return {
        status: 'fail',
        summary: `the daemon could not repair the license files: ${unrepaired.message}`,
        evidence: { ...evidence, unrepaired },
        remedy:
          'Run `service-local daemon logs` to see the cause, and check which process wrote the files.',
      };
    }
    if (last !== undefined && last.server_url !== url && urlBy !== 'option') {
      return {
        status: 'warn',
        summary: `the daemon asks ${last.server_url}, and commands like this one ask ${url}`,
        evidence,
        remedy: 'Set server_url in config.yaml, and start the daemon anew.',
      };
    }
    return {
      status: 'ok',
      summary: last === undefined ? 'it runs' : `it runs since ${last.started_at}, pid ${last.pid}`,
      evidence,
    };
  },
};

/** It looks every minute, and an attempt takes its time. */
const LATE_MS = 5 * 60_000;

const schedule: Check<Facts> = {
  code: 'schedule',
  needs: ['daemon'],
  blames: ['renewal'],
  async look({ clock, isBrought, isDaemonRunning, license, state }) {
    const now = clock();
    const lease = (await license()).leases[0];
    const due = lease && renewalMoment(lease.claims);
    const known = await state();
    const { failures_in_row: failures, last_error: error, next_attempt_at: next } = known;
    const evidence = {
      due_at: due === undefined ? null : formatTime(due),
      next_attempt_at: next,
      next_attempt_because: known.next_attempt_because,
      last_success_at: known.last_success_at,
      last_error: error,
      failures_in_row: failures,
      refused_keyset: known.refused_keyset,
    };
    if (!(await isDaemonRunning())) {
      if (due === undefined) return { status: 'skip', summary: 'nothing is known yet', evidence };
      if (now < due) return { status: 'ok', summary: `the lease is due ${at(due, now)}`, evidence };
      const summary = `the lease was due ${at(due, now)}, and no daemon runs`;
      if (await isBrought()) return { status: 'warn', summary, evidence, remedy: BRING };
      const remedy = `${START} Without a network, see \`service-local license export-request\`.`;
      return { status: 'fail', summary, evidence, remedy };
    }
    if (next !== null && Date.parse(next) < now - LATE_MS) {
      return {
        status: 'warn',
        summary: `the daemon was to ask for a lease ${at(Date.parse(next), now)}, and has not yet`,
        evidence,
        remedy:
          'When this machine has just been asleep, or its clock was set, look again in a minute. Otherwise run `service-local daemon stop` and `daemon start`, and see `daemon logs`.',
      };
    }
    if (known.refused_keyset !== null) {
      const { at: since, message } = known.refused_keyset;
      return {
        status: 'fail',
        summary: `the renewal at ${since} used the held keys, and no new key is accepted: ${message}`,
        evidence,
        remedy:
          'Ask the issuer to sign a newer keyset. If the issuer has replaced its root, enroll this machine again before the signing key changes.',
      };
    }
    // One that somebody made before the lease was due is made up for when it is.
    if (error !== null && failures > 0 && known.next_attempt_because !== 'due') {
      return {
        status: 'warn',
        summary: `${formatCountOf(failures, 'attempt')} failed, at last with: ${error.message}; ${nextAttempt(known)}`,
        evidence,
        remedy: 'See `service-local daemon logs`, or try it now with `license renew --now`.',
      };
    }
    return { status: 'ok', summary: nextAttempt(known), evidence };
  },
};

/** `at 2026-01-02T03:04:05Z, 2 hours ago`. */
function at(time: number, now: number): string {
  const span = formatSpan(Math.abs(now - time));
  return `at ${formatTime(time)}, ${time <= now ? `${span} ago` : `in ${span}`}`;
}

const serviceUnit: Check<Facts> = {
  code: 'service_unit',
  needs: ['device_key'],
  async look({ home, env }) {
    const { platform } = process;
    if (platform !== 'linux' && platform !== 'darwin') {
      return { status: 'skip', summary: `the service manager of ${platform} is not known here` };
    }
    const managers = (['user', 'system'] as const).map((scope) =>
      serviceManager(platform, scope, env),
    );
    const installed = managers.filter(({ path }) => existsSync(path)).map(readUnit);
    const isFor = (unit: Unit): boolean => [home, undefined].includes(unit.home);
    const unit = installed.find(isFor) ?? installed[0];
    if (unit === undefined) {
      return {
        status: 'skip',
        summary: 'the daemon is not started with the machine',
        evidence: { looked_at: managers.map(({ path }) => path) },
        remedy: 'To have that, run `service-local daemon install`.',
      };
    }
    const { path, unreadable } = unit;
    if (unreadable !== undefined) {
      const remedy = `To have it looked at, let everybody read it: \`sudo chmod 644 ${path}\`.`;
      return { status: 'skip', summary: `this user may not read it: ${unreadable}`, remedy };
    }
    const evidence = { path, home: unit.home ?? null };
    if (!isFor(unit)) {
      return {
        status: 'warn',
        summary: `${path} starts the daemon of ${unit.home}, and not that of ${home}`,
        evidence,
        remedy: 'Have this one started instead with `service-local daemon install`.',
      };
    }
    const fault = await whyNotStarted(unit);
    if (fault === undefined) return { status: 'ok', summary: path, evidence };
    const remedy = 'Install it anew with `service-local daemon install`.';
    return { status: 'fail', summary: `${path} ${fault}`, evidence, remedy };
  },
};

interface Unit {
  readonly path: string;
  readonly program: readonly string[];
  /** Undefined when the unit does not say for which. */
  readonly home: string | undefined;
  /** Whether nobody else can have written it, but for the administrator. */
  readonly isTrusted: boolean;
  /** Why this user cannot read it. */
  readonly unreadable?: string;
}

function readUnit({ path, read }: ServiceManager): Unit {
  try {
    const { program, environment } = read(readFileSync(path, 'utf8'));
    const isTrusted = [0, process.getuid!()].includes(statSync(path).uid);
    return { path, program, home: environment['SERVICE_LOCAL_HOME'], isTrusted };
  } catch (error) {
    if (!isSystemError(error)) throw error;
    const { message: unreadable } = error;
    return { path, program: [], home: undefined, isTrusted: false, unreadable };
  }
}

/** How long a Node may take to say its version. */
const NODE_MS = 2000;

async function whyNotStarted({ program, isTrusted }: Unit): Promise<string | undefined> {
  const gone = program.filter((word) => isAbsolute(word) && !existsSync(word));
  if (gone.length > 0) return `starts ${gone.join(' and ')}, which is not there any more`;
  const [node, ...args] = program;
  // What somebody has it started by may take other options.
  if (node === undefined || basename(node) !== 'node' || !isTrusted) return undefined;
  const options = args.slice(
    0,
    args.findIndex((arg) => !arg.startsWith('-')),
  );
  try {
    // Another Node, put in the place of the one it was made for, may not know an option.
    await promisify(execFile)(node, [...options, '--version'], { timeout: NODE_MS });
    return undefined;
  } catch (error) {
    const { stderr = '', message } = error as Error & { readonly stderr?: string };
    return `starts a Node that does not start: ${stderr.trim() || message}`;
  }
}

const versions: Check<Facts> = {
  code: 'versions',
  blames: ['daemon'],
  async look({ isDaemonRunning, note }) {
    const own = packageVersion();
    const theirs = (await isDaemonRunning()) ? (await note())?.version : undefined;
    const evidence = { service_local: own, daemon: theirs ?? null };
    if (theirs === undefined || theirs === own) {
      return { status: 'ok', summary: `service-local ${own}`, evidence };
    }
    return {
      status: 'warn',
      summary: `this is service-local ${own}, and the daemon is still ${theirs}`,
      evidence,
      remedy: 'Run `service-local daemon stop` and `service-local daemon start`.',
    };
  },
};

export const DAEMON_CHECKS = [daemon, schedule, serviceUnit, versions] as const;
