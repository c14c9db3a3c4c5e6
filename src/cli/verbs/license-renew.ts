import type { Outcome } from '../../../daemon/renewal.ts';
import { ServiceError } from '../../errors.ts';
import { licenseFiles } from '../../license-files.ts';
import { limitLines } from '../leases.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Asks the server for the next lease of this machine, when it is due; the daemon does the same by itself. What goes wrong leaves the lease as it is.',
  options: {
    now: { description: 'also when it is not due, and without waiting after a failure' },
  },
  settings: ['server_url'],
  examples: ['license renew', 'license renew --now'],
  async run({ settings, io, message, signal }, _args, { now }) {
    const { renew } = await import('../../../daemon/renewal.ts');
    const { stateTime } = await import('../../../daemon/plan.ts');
    const { systemBoot } = await import('../../gate/boot.ts');
    const { nextAttempt } = await import('../../../daemon/words.ts');
    const files = licenseFiles(settings.home, io.env);
    const machine = {
      files,
      url: settings.server_url,
      clock: Date.now,
      boot: systemBoot,
      random: Math.random,
      warn: message,
    };
    const outcome = await renew(machine, { force: now, signal });
    const { status, lease } = outcome;
    if (status === 'not_due' && outcome.because === 'not_enrolled') throw notEnrolled(files.key);
    return {
      data: {
        status,
        because: status === 'not_due' ? outcome.because : null,
        lease: lease?.claims ?? null,
        limits: status === 'renewed' ? outcome.limits : [],
        next_attempt_at: outcome.state.next_attempt_at,
      },
      failure: failureOf(outcome, now),
      show(out) {
        if (outcome.status === 'not_due') {
          const at = outcome.next === null ? null : stateTime(outcome.next);
          const because = { next_attempt_at: at, next_attempt_because: outcome.because };
          out.line(`Not renewed; ${nextAttempt({ ...outcome.state, ...because })}.`);
        }
        if (lease === undefined) return;
        const { expires_at, grace_ends_at } = lease.claims;
        if (status === 'renewed') out.line('Renewed.');
        out.line(`${lease.path} is good until ${expires_at}, with grace until ${grace_ends_at}.`);
        if (status === 'renewed')
          for (const line of limitLines(outcome.limits)) out.line(`  ${line}`);
      },
    };
  },
});

function notEnrolled(key: string): ServiceError {
  return new ServiceError('file_not_found', `${key} is not there: this is no device`, {
    remedy: 'Enrol it with `service-local license enroll`.',
  });
}

function failureOf(outcome: Outcome, now: boolean): ServiceError | undefined {
  if (outcome.status === 'failed') return outcome.error;
  if (outcome.status === 'renewed' || !now) return undefined;
  return new ServiceError('rate_limited', 'as many requests have gone out as may in an hour', {
    remedy: 'Try it again later; the daemon does so by itself.',
  });
}
