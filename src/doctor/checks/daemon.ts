import { execFile } from 'node:child_process';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, isAbsolute } from 'node:path';
import { promisify } from 'node:util';
import { serviceManager, type ServiceManager } from '../../../daemon/service-unit.ts';
import { describeNextAttempt } from '../../../daemon/next-attempt.ts';
import { isSystemError } from '../../base/system-errors.ts';
import { formatCountOf, formatSpan } from '../../base/format.ts';
import { renewalMoment } from '../../lease/renewal-moment.ts';
import { formatTime } from '../../lease/time.ts';
import { packageVersion } from '../../base/package-version.ts';
import type { Check } from '../run-checks.ts';
import type { Facts } from '../machine-facts.ts';
import { RENEW_BY_HAND } from './license.ts';

const START =
  'Start it with `service-local daemon start`, or install it with `service-local daemon install` so that it starts with the machine.';

const daemon: Check<Facts> = {
  code: 'daemon',
  needs: ['device_key'],
  blames: ['home', 'runtime'],
  async run({ url, urlBy, isRenewedByHand, isDaemonRunning, note, state }) {
    const running = await isDaemonRunning();
    const last = await note();
    const evidence = { running, last: last ?? null };
    if (!running && urlBy === 'default' && (await isRenewedByHand())) {
      const summary = 'no daemon has run here: the lease is renewed by hand';
      return {
        status: 'ok',
        summary,
        evidence,
        remedy: `${RENEW_BY_HAND} Do this before the lease is due.`,
      };
    }
    if (!running) {
      const isKilled = last?.stopped_at === null;
      const summary = `the daemon ${isKilled ? 'was killed' : 'is not running'}, so the lease is not renewed`;
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
        summary: `the daemon uses the server ${last.server_url}, but commands use ${url}`,
        evidence,
        remedy:
          'Set server_url in config.yaml, and restart the daemon with `service-local daemon stop` and `service-local daemon start`.',
      };
    }
    return {
      status: 'ok',
      summary:
        last === undefined
          ? 'the daemon is running'
          : `the daemon has been running since ${last.started_at}, pid ${last.pid}`,
      evidence,
    };
  },
};

/** The daemon checks the schedule every minute, and an attempt takes time. */
const LATE_MS = 5 * 60_000;

const schedule: Check<Facts> = {
  code: 'schedule',
  needs: ['daemon'],
  blames: ['renewal'],
  async run({ clock, isRenewedByHand, isDaemonRunning, license, state }) {
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
      if (due === undefined)
        return { status: 'skip', summary: 'there is no lease to renew yet', evidence };
      if (now < due)
        return { status: 'ok', summary: `the lease is due for renewal ${at(due, now)}`, evidence };
      const summary = `the lease was due for renewal ${at(due, now)}, and no daemon is running`;
      if (await isRenewedByHand())
        return { status: 'warn', summary, evidence, remedy: RENEW_BY_HAND };
      const remedy = `${START} Without a network, run \`service-local license export-request\`.`;
      return { status: 'fail', summary, evidence, remedy };
    }
    if (next !== null && Date.parse(next) < now - LATE_MS) {
      return {
        status: 'warn',
        summary: `the daemon should have renewed the lease ${at(Date.parse(next), now)}, but has not tried`,
        evidence,
        remedy:
          'If this machine was just asleep or its clock was changed, check again in a minute. Otherwise run `service-local daemon stop` and `service-local daemon start`, and read `service-local daemon logs`.',
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
    // A failed renewal before the due time does not matter: the daemon tries when the lease is due.
    if (error !== null && failures > 0 && known.next_attempt_because !== 'due') {
      return {
        status: 'warn',
        summary: `${formatCountOf(failures, 'attempt')} failed, the last with: ${error.message}; ${describeNextAttempt(known)}`,
        evidence,
        remedy:
          'Read `service-local daemon logs`, or renew the lease with `service-local license renew --now`.',
      };
    }
    return { status: 'ok', summary: describeNextAttempt(known), evidence };
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
  async run({ home, env }) {
    const { platform } = process;
    if (platform !== 'linux' && platform !== 'darwin') {
      return { status: 'skip', summary: `installing the daemon on ${platform} is not supported` };
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
        summary: 'the daemon is not installed as a service',
        evidence: { looked_at: managers.map(({ path }) => path) },
        remedy: 'To start the daemon with the machine, run `service-local daemon install`.',
      };
    }
    const { path, unreadable } = unit;
    if (unreadable !== undefined) {
      const remedy = `Make the file readable with \`sudo chmod 644 ${path}\`.`;
      return { status: 'skip', summary: `the service unit cannot be read: ${unreadable}`, remedy };
    }
    const evidence = { path, home: unit.home ?? null };
    if (!isFor(unit)) {
      return {
        status: 'warn',
        summary: `${path} starts the daemon for ${unit.home}, not for ${home}`,
        evidence,
        remedy:
          'To start the daemon for this home directory instead, run `service-local daemon install`.',
      };
    }
    const fault = await whyNotStarted(unit);
    if (fault === undefined) return { status: 'ok', summary: path, evidence };
    const remedy = 'Install it again with `service-local daemon install`.';
    return { status: 'fail', summary: `${path} ${fault}`, evidence, remedy };
  },
};

interface Unit {
  readonly path: string;
  readonly program: readonly string[];
  /** Home directory of the daemon; undefined if the unit does not state it. */
  readonly home: string | undefined;
  /** Whether only this user or root can have written it. */
  readonly isTrusted: boolean;
  /** Error if this user cannot read it. */
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

/** Timeout of `node --version`. */
const NODE_MS = 2000;

async function whyNotStarted({ program, isTrusted }: Unit): Promise<string | undefined> {
  const missing = program.filter((word) => isAbsolute(word) && !existsSync(word));
  if (missing.length > 0) return `starts ${missing.join(' and ')}, which does not exist`;
  const [node, ...args] = program;
  // Another program, such as a wrapper, may not accept the options of Node.
  if (node === undefined || basename(node) !== 'node' || !isTrusted) return undefined;
  const options = args.slice(
    0,
    args.findIndex((arg) => !arg.startsWith('-')),
  );
  try {
    // A different version of Node at the same path may not know an option.
    await promisify(execFile)(node, [...options, '--version'], { timeout: NODE_MS });
    return undefined;
  } catch (error) {
    const { stderr = '', message } = error as Error & { readonly stderr?: string };
    return `starts Node with options that fail: ${stderr.trim() || message}`;
  }
}

const versions: Check<Facts> = {
  code: 'versions',
  blames: ['daemon'],
  async run({ isDaemonRunning, note }) {
    const own = packageVersion();
    const theirs = (await isDaemonRunning()) ? (await note())?.version : undefined;
    const evidence = { service_local: own, daemon: theirs ?? null };
    if (theirs === undefined || theirs === own) {
      return { status: 'ok', summary: `service-local ${own}`, evidence };
    }
    return {
      status: 'warn',
      summary: `this is service-local ${own}, but the daemon is still ${theirs}`,
      evidence,
      remedy: 'Run `service-local daemon stop` and `service-local daemon start`.',
    };
  },
};

export const DAEMON_CHECKS = [daemon, schedule, serviceUnit, versions] as const;
