import { existsSync } from 'node:fs';
import { ServiceError } from '../../errors.ts';
import { LEASE_REASONS } from '../../lease/reasons.ts';
import { showClaims, viewLicense, type LicenseView } from '../license.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Says until when everything licensed works on this machine, and who renews the lease when. Needs no network. Exits with 0 while it works, in the grace period too, and otherwise with 4.',
  examples: ['license status', 'license status --json | jq -r .works_until'],
  async run(context) {
    const { viewDaemon } = await import('../daemon.ts');
    const { nextAttempt } = await import('../../../daemon/words.ts');
    const now = Date.now();
    const view = await viewLicense(context, now);
    const { files, license, held } = view;
    const { isRunning, state } = await viewDaemon(context.settings.home, context.io.env);
    const isDevice = existsSync(files.key);
    const { last_error, next_attempt_because } = state;
    const isDenied = last_error !== null && next_attempt_because === 'denied';
    const due_at = held?.due_at ?? null;
    const isWorking = held !== undefined && held.status.state !== 'expired';
    return {
      data: {
        state: held?.status.state ?? 'none',
        reason: held === undefined ? license.refused[0]!.reason : held.status.reason,
        works_until: isWorking ? held.claims.grace_ends_at : null,
        next_change_at: held?.status.next_change_at ?? null,
        lease: held?.claims ?? null,
        file: held?.path ?? files.lease,
        renewal: {
          due_at,
          enrolled: isDevice,
          daemon: isRunning,
          denied: isDenied,
          next_attempt_at: isRunning ? state.next_attempt_at : null,
          last_error,
        },
      },
      failure: failureOf(view),
      show(out) {
        if (isWorking) out.line(worksUntil(held));
        if (isDenied) out.line(`The server denies renewal: ${last_error.message}.`);
        else if (last_error) {
          out.line(`The last renewal failed at ${last_error.at}: ${last_error.message}.`);
        }
        if (held === undefined) return;
        if (held.path !== files.lease) {
          out.line(`What counts is ${held.path}: ${license.refused[0]?.detail ?? 'it is better'}.`);
        }
        if (isRunning) out.line(`The daemon renews it; ${nextAttempt(state)}.`);
        else if (isDevice) {
          const when = held.isDue ? 'now' : `from ${due_at} on`;
          out.line(
            `No daemon renews it: start one with \`service-local daemon start\`, or run \`service-local license renew\` ${when}.`,
          );
        } else {
          out.line('This machine is not enrolled, so that a new lease has to be brought to it.');
        }
        out.line();
        showClaims(out, held.claims);
      },
    };
  },
});

function worksUntil({ status, claims }: NonNullable<LicenseView['held']>): string {
  const { expires_at, grace_ends_at } = claims;
  const until = `Everything licensed works until ${grace_ends_at}`;
  if (status.reason === null) return `${until}, from ${expires_at} on with a warning.`;
  return `${until}, with a warning: ${LEASE_REASONS[status.reason]}`;
}

function failureOf({ held, license, files }: LicenseView): ServiceError | undefined {
  if (held === undefined) {
    const { reason, detail } = license.refused[0]!;
    return new ServiceError('license_invalid', `nothing licensed works: ${detail}`, {
      reason,
      remedy: existsSync(files.key)
        ? 'Get a lease with `service-local license renew --now`, or see `service-local doctor`.'
        : 'Enrol this machine with `service-local license enroll`, or bring a lease to it with `service-local license import`.',
    });
  }
  if (held.status.state !== 'expired') return undefined;
  const { grace_ends_at } = held.claims;
  return new ServiceError(
    'license_invalid',
    `nothing licensed works: the lease ended on ${grace_ends_at}`,
    {
      reason: 'expired',
      remedy: 'Renew it with `service-local license renew --now`, or see `service-local doctor`.',
    },
  );
}
