import { existsSync, readFileSync } from 'node:fs';
import { serviceManager } from '../../../daemon/service-unit.ts';
import { nextAttempt } from '../../../daemon/words.ts';
import { formatCountOf, formatSpan } from '../../format.ts';
import { renewalMoment } from '../../lease/schedule.ts';
import { formatTime } from '../../lease/time.ts';
import { packageVersion } from '../../version.ts';
import type { Check } from '../check.ts';
import type { Facts } from '../facts.ts';

const START =
  'Start it with `service-local daemon start`, or have it started with the machine by `daemon install`.';

const daemon: Check<Facts> = {
  code: 'daemon',
  needs: ['device_key'],
  blames: ['home', 'runtime'],
  async look({ url, isDaemonRunning, state }) {
    const running = isDaemonRunning();
    const { daemon: last } = await state();
    const evidence = { running, last };
    if (!running) {
      const isKilled = last !== null && last.stopped_at === null;
      const summary = `it does not run${isKilled ? ', and was killed' : ''}: nobody renews the lease`;
      return { status: 'warn', summary, evidence, remedy: START };
    }
    if (last !== null && last.server_url !== url) {
      return {
        status: 'warn',
        summary: `the daemon asks ${last.server_url}, and commands like this one ask ${url}`,
        evidence,
        remedy: 'Set server_url in config.yaml, and start the daemon anew.',
      };
    }
    return {
      status: 'ok',
      summary: last === null ? 'it runs' : `it runs since ${last.started_at}, pid ${last.pid}`,
      evidence,
    };
  },
};

/** It looks every minute; a machine that just woke up may be a little later. */
const LATE_MS = 5 * 60_000;

const schedule: Check<Facts> = {
  code: 'schedule',
  needs: ['daemon'],
  blames: ['renewal'],
  async look({ clock, isDaemonRunning, license, state }) {
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
    };
    if (!isDaemonRunning()) {
      if (due === undefined) return { status: 'skip', summary: 'nothing is known yet', evidence };
      if (now < due) return { status: 'ok', summary: `the lease is due ${at(due, now)}`, evidence };
      const summary = `the lease was due ${at(due, now)}, and no daemon runs`;
      const remedy = `${START} Without a network, see \`service-local license export-request\`.`;
      return { status: 'fail', summary, evidence, remedy };
    }
    if (next !== null && Date.parse(next) < now - LATE_MS) {
      return {
        status: 'fail',
        summary: `the daemon hangs: it was to ask for a lease ${at(Date.parse(next), now)}`,
        evidence,
        remedy: 'Run `service-local daemon stop` and `daemon start`, and see `daemon logs`.',
      };
    }
    if (error !== null && failures > 0) {
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
  look({ env }) {
    const { platform } = process;
    if (platform !== 'linux' && platform !== 'darwin') {
      return { status: 'skip', summary: `the service manager of ${platform} is not known here` };
    }
    const paths = (['user', 'system'] as const).map(
      (scope) => serviceManager(platform, scope, env).path,
    );
    const path = paths.find((one) => existsSync(one));
    if (path === undefined) {
      return {
        status: 'skip',
        summary: 'the daemon is not started with the machine',
        evidence: { looked_at: paths },
        remedy: 'To have that, run `service-local daemon install`.',
      };
    }
    const gone = programOf(readFileSync(path, 'utf8')).filter((one) => !existsSync(one));
    const evidence = { path, gone };
    if (gone.length === 0) return { status: 'ok', summary: path, evidence };
    return {
      status: 'fail',
      summary: `${path} starts ${gone.join(' and ')}, which is not there any more`,
      evidence,
      remedy: 'Install it anew with `service-local daemon install`.',
    };
  },
};

/** What a unit of systemd or a list of launchd starts: absolute paths. */
function programOf(text: string): readonly string[] {
  const [words = ''] = /^ExecStart=.*$|<key>ProgramArguments.*?<\/array>/ms.exec(text) ?? [];
  return Array.from(
    words.matchAll(/"(\/[^"\\%]+)"|>(\/[^<&]+)</g),
    ([, unit, list]) => unit ?? list!,
  );
}

const versions: Check<Facts> = {
  code: 'versions',
  blames: ['daemon'],
  async look({ isDaemonRunning, state }) {
    const own = packageVersion();
    const { daemon: last } = await state();
    const theirs = isDaemonRunning() ? last?.version : undefined;
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
