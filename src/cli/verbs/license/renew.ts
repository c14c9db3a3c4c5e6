import { resolve } from 'node:path';
import type { Outcome } from '../../../../daemon/renewal.ts';
import { ServiceError } from '../../../base/errors.ts';
import { licenseFiles } from '../../../gate/license-files.ts';
import { formatLimits } from '../../leases.ts';
import {
  formatValidity,
  INSECURE,
  suggestRemedy,
  viewLicense,
  findLicenseFailure,
  type LicenseView,
} from '../../license.ts';
import { readNamedFile } from '../../read-named-file.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'renew the lease if it is due',
  description:
    'Requests the next lease of this machine from the server if renewal is due; the daemon does this automatically. A failure leaves the current lease unchanged. Also exits with 0 if renewal is not due and the current lease is valid, and with 4 if this machine is not enrolled and no lease works.',
  options: {
    now: { description: 'renew now, even if the lease is not due or a retry is pending' },
    keyset: {
      value: 'file',
      description:
        'keys to trust instead of the keys of this machine, after a key change that cannot be verified: a copy of /.well-known/license-keys.json of the server, or one key as JWK or PEM',
      complete: 'file',
    },
    insecure: INSECURE,
  },
  settings: ['server_url'],
  examples: [
    'license renew',
    'license renew --now',
    'license renew --now --keyset license-keys.json',
  ],
  async run(context, _args, { now, keyset, insecure }) {
    const { settings, io, cwd, message, signal } = context;
    const { renew } = await import('../../../../daemon/renewal.ts');
    const { stateTime } = await import('../../../../daemon/plan-attempt.ts');
    const { systemBoot } = await import('../../../gate/boot.ts');
    const { describeNextAttempt } = await import('../../../../daemon/next-attempt.ts');
    const files = licenseFiles(settings.home, io.env);
    const machine = {
      files,
      url: settings.server_url,
      insecure: insecure || settings.server_insecure,
      clock: Date.now,
      boot: systemBoot,
      random: Math.random,
      warn: message,
    };
    const outcome = await renew(machine, {
      force: now,
      signal,
      keyset: keyset === undefined ? undefined : await readNamedFile(resolve(cwd, keyset)),
    });
    const { status, lease } = outcome;
    const view = await viewLicense(context, Date.now());
    if (status === 'not_due' && outcome.because === 'not_enrolled') throw notEnrolled(view);
    const failure = failureOf(outcome, now) ?? findLicenseFailure(view);
    return {
      data: {
        status,
        because: status === 'not_due' ? outcome.because : null,
        lease: lease?.claims ?? null,
        limits: status === 'renewed' ? outcome.limits : [],
        next_attempt_at: outcome.state.next_attempt_at,
      },
      failure,
      show(out) {
        if (outcome.status === 'not_due') {
          const at = outcome.next === null ? null : stateTime(outcome.next);
          const because = { next_attempt_at: at, next_attempt_because: outcome.because };
          out.line(`Not renewed; ${describeNextAttempt({ ...outcome.state, ...because })}.`);
        }
        if (status === 'renewed') out.line('Renewed.');
        if (status === 'renewed' && outcome.refusedKeyset !== undefined) {
          out.line(`No new key is accepted: ${outcome.refusedKeyset.message}`);
        }
        if (failure !== undefined || lease === undefined) return;
        out.line(`${lease.path} ${formatValidity(lease.claims)}.`);
        if (status === 'renewed')
          for (const line of formatLimits(outcome.limits)) out.line(`  ${line}`);
      },
    };
  },
});

/** Returns an error with the exit code of `license status` if no lease works. */
function notEnrolled(view: LicenseView): ServiceError {
  const { code = 'file_not_found', reason } = findLicenseFailure(view) ?? {};
  const message = `this machine is not enrolled: ${view.files.key} does not exist`;
  return new ServiceError(code, message, {
    ...(reason !== undefined && { reason }),
    remedy: suggestRemedy(view),
  });
}

function failureOf(outcome: Outcome, now: boolean): ServiceError | undefined {
  if (outcome.status === 'failed') return outcome.error;
  if (outcome.status === 'renewed' || !now) return undefined;
  return new ServiceError(
    'rate_limited',
    'this machine has sent the maximum number of requests per hour',
    {
      remedy: 'Try again later; the daemon does so automatically.',
    },
  );
}
