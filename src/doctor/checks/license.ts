import { existsSync } from 'node:fs';
import { ServiceError } from '../../base/errors.ts';
import { formatSpan } from '../../base/format.ts';
import { statusOf, type License, type RefusedFile } from '../../gate/license.ts';
import { knownTime } from '../../lease/known-time.ts';
import { LEASE_REASONS, type LeaseReason } from '../../lease/reasons.ts';
import { CLOCK_TOLERANCE_SECONDS } from '../../lease/status.ts';
import { formatTime, parseTime } from '../../lease/time.ts';
import { effectOf, type Check, type Finding } from '../run-checks.ts';
import type { Facts } from '../machine-facts.ts';
import { leaseUse } from './lease-use.ts';
import { accessRemedy, isForeign, keyset, trust } from './trust.ts';

/** Faults of a file, as opposed to faults of the signed content. */
const FILE_FAULTS: ReadonlySet<LeaseReason> = new Set([
  'missing',
  'unreadable',
  'too_large',
  'foreign_owner',
  'not_private',
  'not_json',
  'nested_too_deep',
  'duplicate_member',
  'forbidden_member',
  'not_an_envelope',
]);

const leaseFile: Check<Facts> = {
  code: 'lease_file',
  blames: ['home'],
  async run({ files, env, license }) {
    const { keyset: keys, leases, refused } = await license();
    const winner = leases[0];
    const evidence = { winner: winner?.path ?? null, candidates: candidatesOf(leases, refused) };
    if (winner?.path === files.lease) {
      const count = evidence.candidates.length;
      const copies = count > 1 ? `, the best of ${count} copies` : '';
      return { status: 'ok', summary: `${winner.path}${copies}`, evidence };
    }

    const own = refused.find(({ path }) => path === files.lease);
    const fault =
      own?.reason === 'missing' ? 'does not exist' : own && `is not usable: ${own.detail}`;
    if (winner !== undefined) {
      return {
        status: 'warn',
        summary: `${files.lease} ${fault ?? 'is not the best copy'}; ${winner.path} is used instead`,
        evidence,
        remedy: 'Run `service-local doctor --fix` to put the best copy in its place.',
      };
    }
    // Files cannot be verified without keys; lease_signature reports faults of signed content.
    const isUnread = ({ detail }: RefusedFile): boolean => !keys.ok && detail === keys.detail;
    if (refused.some((file) => isUnread(file) || !FILE_FAULTS.has(file.reason))) {
      return { status: 'ok', summary: files.lease, evidence };
    }
    const isDevice = existsSync(files.key);
    const isLicensed = isDevice || keys.ok || env['SERVICE_LICENSE_LEASE_PATH'];
    if (refused.length === 1 && own?.reason === 'missing' && !isLicensed) {
      return {
        status: 'skip',
        summary: 'no license is installed; local work needs none',
        evidence,
        remedy: 'To get a license, run `service-local license enroll`.',
      };
    }
    const isAccess = own?.reason === 'not_private' || own?.reason === 'foreign_owner';
    return {
      status: 'fail',
      summary: `${files.lease} ${fault}`,
      evidence,
      remedy: isAccess
        ? accessRemedy(own.reason, files.lease)
        : isDevice
          ? own?.reason === 'missing'
            ? ENROLL_OR_RENEW
            : RENEW
          : DELIVER,
    };
  },
};

function candidatesOf(leases: License['leases'], refused: License['refused']): readonly object[] {
  return [
    ...leases.map(({ path, claims: { lease_id, issued_at, expires_at } }) => ({
      path,
      lease_id,
      issued_at,
      expires_at,
    })),
    ...refused,
  ];
}

const RENEW =
  'Get a new lease with `service-local license renew --now`, unless another check reports why that fails.';
const ENROLL_OR_RENEW =
  'If this machine was never enrolled, run `service-local license enroll`; otherwise get a new lease with `service-local license renew --now`.';
const DELIVER = 'Have the lease delivered again, or run `service-local license enroll`.';

/** Remedy for machines whose leases people import. */
export const RENEW_BY_HAND =
  'Create a request with `service-local license export-request`, and install the lease that comes back with `service-local license import`.';

const leaseSignature: Check<Facts> = {
  code: 'lease_signature',
  needs: ['lease_file'],
  blames: ['keyset'],
  async run({ files, license }) {
    const { leases, refused, trusted } = await license();
    if (leases[0] !== undefined) {
      const { lease_id, deployment_id, customer_id, public_key_id, issuer } = leases[0].claims;
      return {
        status: 'ok',
        summary: `${issuer} signed the lease ${lease_id} of ${deployment_id}`,
        evidence: { lease_id, deployment_id, customer_id, issuer, public_key_id },
      };
    }
    if (trusted === undefined) {
      return { status: 'fail', summary: 'no lease can be verified without trusted keys' };
    }
    const signed = refused.filter((file) => !FILE_FAULTS.has(file.reason));
    if (signed.every(isForeign)) return effectOf('trust', 'there is no lease for this machine');
    const { path, reason, detail } = signed[0]!;
    return {
      status: 'fail',
      summary: `${path}: ${detail}. ${LEASE_REASONS[reason].replace(/\.$/, '')}`,
      evidence: { path, reason },
      remedy: existsSync(files.key) ? RENEW : DELIVER,
    };
  },
};

const TOLERANCE_MS = CLOCK_TOLERANCE_SECONDS * 1000;

const clock: Check<Facts> = {
  code: 'clock',
  async run(facts) {
    const ahead = await aheadOfClock(facts);
    const behind = await behindSigned(facts);
    const evidence = {
      now: formatTime(facts.clock()),
      server_ahead_seconds: ahead === undefined ? null : Math.round(ahead / 1000),
      behind_signed_seconds: behind === undefined ? null : Math.round(behind / 1000),
    };
    if (ahead === undefined && behind === undefined) {
      return {
        status: 'skip',
        summary: 'there is no other time to compare the clock with',
        evidence,
      };
    }
    const off = Math.max(ahead ?? 0, behind ?? 0);
    if (off > TOLERANCE_MS) return clockIs(`${formatSpan(off)} behind`, evidence);
    if (ahead !== undefined && -ahead > TOLERANCE_MS) {
      return clockIs(`${formatSpan(-ahead)} ahead`, evidence);
    }
    const compared =
      ahead === undefined
        ? 'the clock is not behind any signed time'
        : 'the clock agrees with that of the server';
    return { status: 'ok', summary: compared, evidence };
  },
};

function clockIs(what: string, evidence: Finding['evidence'] & {}): Finding {
  const remedy = 'Correct the clock, and keep it synchronized (`timedatectl set-ntp true`).';
  return { status: 'fail', summary: `the clock of this machine is ${what}`, evidence, remedy };
}

/** Lead of the server's clock, ms; undefined if unknown. The check server reports connection errors. */
async function aheadOfClock({ server }: Facts): Promise<number | undefined> {
  const answer = await server().catch(() => undefined);
  return answer?.ahead;
}

/** How far the clock is behind the earliest possible time according to signed times, ms. */
async function behindSigned({ license, running, clock: now }: Facts): Promise<number | undefined> {
  const [lease] = (await license()).leases;
  return lease && parseTime(knownTime(lease.claims, await running()))! - now();
}

const leaseState: Check<Facts> = {
  code: 'lease_state',
  needs: ['lease_use'],
  async run(facts) {
    const now = facts.clock();
    const [license, running, ahead] = await Promise.all([
      facts.license(),
      facts.running(),
      aheadOfClock(facts),
    ]);
    const lease = license.leases[0]!;
    const { issued_at, expires_at, grace_ends_at } = lease.claims;
    const { state, reason } = statusOf(lease, now, running);
    const evidence = { state, reason, issued_at, expires_at, grace_ends_at };
    const isClockWrong = Math.abs(ahead ?? 0) > TOLERANCE_MS;
    const right = isClockWrong ? statusOf(lease, now + ahead!, running).state : state;
    if (right !== state || reason === 'not_yet_valid' || reason === 'clock_rollback') {
      const summary = `${state} according to this clock; the lease expires at ${expires_at}`;
      return { ...effectOf('clock', summary), evidence };
    }
    const until = (time: string): string => `${time} (${formatSpan(parseTime(time)! - now)} left)`;
    if (state === 'valid') {
      const summary = `valid until ${until(expires_at)}, then in grace until ${grace_ends_at}`;
      return { status: 'ok', summary, evidence };
    }
    const remedy = await remedyOf(facts);
    if (state === 'grace') {
      const summary = `in grace, because the lease was not renewed in time; everything works until ${until(grace_ends_at)}`;
      return { status: 'warn', summary, evidence, remedy };
    }
    const summary = `expired; the grace period ended at ${grace_ends_at}`;
    if (await isDenied(facts)) return { ...effectOf('renewal', summary), evidence };
    return { status: 'fail', summary, evidence, remedy };
  },
};

async function remedyOf({ files, isRenewedByHand }: Facts): Promise<string> {
  if (await isRenewedByHand()) return RENEW_BY_HAND;
  return existsSync(files.key) ? RENEW : DELIVER;
}

/** Whether the server denies further leases. */
async function isDenied({ offline, key, renewal }: Facts): Promise<boolean> {
  try {
    if (!offline && (await key()) !== undefined) await renewal();
    return false;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return ENDED.has(error.code);
  }
}

const ENDED: ReadonlySet<string> = new Set(['license_revoked', 'contract_ended']);

const entitlements: Check<Facts> = {
  code: 'entitlements',
  needs: ['lease_state'],
  async run({ license }) {
    const { entitlements: features } = (await license()).leases[0]!.claims;
    const summary = features.join(', ') || 'the lease licenses no features';
    return { status: 'ok', summary, evidence: { entitlements: features } };
  },
};

export const LICENSE_CHECKS = [
  leaseFile,
  keyset,
  trust,
  leaseSignature,
  leaseUse,
  clock,
  leaseState,
  entitlements,
] as const;
