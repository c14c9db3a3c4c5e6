import { deniedSince } from '../../../../daemon/denial.ts';
import { LEASE_REASONS } from '../../../lease/reasons.ts';
import {
  isWorking,
  suggestRemedy,
  showClaims,
  viewLicense,
  findLicenseFailure,
  type LicenseView,
} from '../../license.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'show until when this machine is licensed',
  description:
    'Shows until when this machine is licensed, who renews the lease and when, and which license files are rejected. Needs no network. Exits with 0 while the lease is valid or in its grace period, otherwise with 4.',
  examples: ['license status', 'license status --json | jq -r .works_until'],
  async run(context) {
    const { viewDaemon } = await import('../../daemon.ts');
    const { describeNextAttempt } = await import('../../../../daemon/next-attempt.ts');
    const now = Date.now();
    const view = await viewLicense(context, now);
    const { files, license, refused, held, renewedBy, state } = view;
    const { findOtherServer } = await import('../../../client/other-server.ts');
    const { settings, settingSources } = context;
    const { isRunning } = await viewDaemon(settings.home, context.io.env);
    const isDevice = renewedBy === 'server' || renewedBy === 'files';
    const otherServer = isDevice
      ? findOtherServer(settingSources.server_url, settings.home)
      : undefined;
    const { last_error } = state;
    const denied_since = deniedSince(state);
    const due_at = held?.due_at ?? null;
    const works = isWorking(held);
    return {
      data: {
        state: held === undefined || held.unusable ? 'none' : held.status.state,
        reason:
          held === undefined
            ? license.refused[0]!.reason
            : (held.unusable?.reason ?? held.status.reason),
        works_until: works ? held!.claims.grace_ends_at : null,
        next_change_at: held?.status.next_change_at ?? null,
        lease: held?.claims ?? null,
        file: held?.path ?? files.lease,
        refused,
        renewal: {
          due_at,
          enrolled: isDevice,
          daemon: isRunning,
          denied: denied_since !== undefined,
          denied_since: denied_since ?? null,
          next_attempt_at: isRunning ? state.next_attempt_at : null,
          last_error,
          other_server: otherServer?.summary ?? null,
        },
      },
      failure: findLicenseFailure(view),
      show(out) {
        if (works) out.line(worksUntil(held!));
        if (last_error !== null) {
          const { at, message } = last_error;
          const what = denied_since
            ? `The server has denied renewal since ${denied_since}`
            : `The last renewal failed at ${at}`;
          out.line(`${what}: ${message}.`);
        }
        if (otherServer) out.line(`${otherServer.summary}. ${otherServer.remedy}`);
        const listed = refused.filter(({ reason }) => reason !== 'missing');
        for (const { path, detail } of listed) {
          out.line(`${path} is refused: ${detail}.`);
        }
        if (held === undefined) return;
        if (held.path !== files.lease) {
          const isListed = listed.some(({ path }) => path === files.lease);
          const why = license.refused[0]?.detail ?? 'it is better';
          out.line(`The lease in ${held.path} is used${isListed ? '' : `: ${why}`}.`);
        }
        const does = denied_since === undefined ? 'renews it' : 'asks again for renewal';
        if (isRunning && isDevice) out.line(`The daemon ${does}; ${describeNextAttempt(state)}.`);
        else out.line(howToRenew(view, held));
        out.line();
        showClaims(out, held.claims);
      },
    };
  },
});

function worksUntil({ status, claims }: NonNullable<LicenseView['held']>): string {
  const { expires_at, grace_ends_at } = claims;
  const until = `The lease works until ${grace_ends_at}`;
  if (status.reason !== null) return `${until}, with a warning: ${LEASE_REASONS[status.reason]}`;
  return grace_ends_at === expires_at
    ? `${until}.`
    : `${until}; its grace period begins at ${expires_at}.`;
}

/** Explains how to renew the lease while no daemon runs. */
function howToRenew(
  view: LicenseView,
  { isDue, due_at }: NonNullable<LicenseView['held']>,
): string {
  const when = isDue ? 'now' : `from ${due_at} on`;
  const ways: Readonly<Record<LicenseView['renewedBy'], string>> = {
    server: `No daemon renews it: start one with \`service-local daemon start\`, or run \`service-local license renew\` ${when}.`,
    files: `It is renewed by hand: run \`service-local license export-request --out FILE\` ${when}, and \`service-local license import\` with the issued lease.`,
    nobody: 'This machine is not enrolled, so you must copy a new lease to it.',
    lost_key: `The lease cannot be renewed: it belongs to the device whose key was ${view.files.key}, and that file is missing. ${suggestRemedy(view)}`,
  };
  return ways[view.renewedBy];
}
