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
  summary: 'get the next lease, when it is due',
  description:
    'Asks the server for the next lease of this machine, when it is due; the daemon does the same by itself. What goes wrong leaves the lease as it is. Exits with 0 when nothing was due and what is held works.',
  options: {
    now: { description: 'also when it is not due, and without waiting after a failure' },
    keyset: {
      value: 'file',
      description:
        'keys to trust instead of those of this machine, after a change that nothing vouches for: what the server publishes at /.well-known/license-keys.json, or one key as JWK or PEM',
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
    const { stateTime } = await import('../../../../daemon/plan.ts');
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

function notEnrolled(view: LicenseView): ServiceError {
  const message = `this machine is not enrolled: ${view.files.key} does not exist`;
  return new ServiceError('file_not_found', message, { remedy: suggestRemedy(view) });
}

function failureOf(outcome: Outcome, now: boolean): ServiceError | undefined {
  if (outcome.status === 'failed') return outcome.error;
  if (outcome.status === 'renewed' || !now) return undefined;
  return new ServiceError('rate_limited', 'as many requests have gone out as may in an hour', {
    remedy: 'Try it again later; the daemon does so by itself.',
  });
}
