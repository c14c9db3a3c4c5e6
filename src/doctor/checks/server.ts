import { DAY } from '../../base/durations.ts';
import { existsSync, lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DeviceKey } from '../../client/device-key.ts';
import { ServiceError } from '../../base/errors.ts';
import { formatSpan } from '../../base/format.ts';
import { leasesHere } from '../../gate/lease-use.ts';
import { statusOf } from '../../gate/license.ts';
import { effectOf, type Check, type Finding } from '../run-checks.ts';
import type { Facts, ServerAnswer } from '../machine-facts.ts';

const deviceKey: Check<Facts> = {
  code: 'device_key',
  blames: ['home'],
  async run(facts) {
    const { files } = facts;
    const own = await readKey(facts);
    if (own === undefined) return withoutKey(facts);
    const { device_id } = own;
    const evidence = { device_id };
    if (existsSync(files.nextKey)) {
      return {
        status: 'warn',
        summary: `the rotation of the key of device ${device_id} is not finished`,
        evidence,
        remedy: 'Run `service-local license rotate-key` to finish it.',
      };
    }
    const { refused, leases } = await facts.license();
    const isLeased = leases.length > 0 || refused[0]?.reason !== 'missing';
    const summary = isLeased
      ? `this is the device ${device_id}`
      : `${files.key} contains the key of device ${device_id}; without a lease, it is unknown whether the device is enrolled`;
    return { status: 'ok', summary, evidence };
  },
};

/** @throws ServiceError that states how long the lease still works, and what to do */
async function readKey(facts: Facts): Promise<DeviceKey | undefined> {
  try {
    return await facts.key();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code, reason = '', message, remedy } = error;
    if (reason === 'not_private') {
      const advice = `${remedy} If other users may have read the key, then replace it with \`service-local license rotate-key\`.`;
      throw new ServiceError(code, message, { reason, remedy: advice, cause: error });
    }
    if (reason !== 'not_a_key' && reason !== 'wrong_key_type') throw error;
    const summary = `${message}: the lease cannot be renewed; ${await describeRemaining(facts)}`;
    throw new ServiceError(code, summary, {
      reason,
      remedy: `Move the file away, ${ENROLL_AGAIN}`,
      cause: error,
    });
  }
}

const ENROLL_AGAIN =
  'ask for a new enrollment code, and enroll this machine again with `service-local license enroll`.';

async function withoutKey(facts: Facts): Promise<Finding> {
  const { files, home, license } = facts;
  const [lease] = (await license()).leases;
  const device_id = lease?.claims.device_thumbprint;
  if (lease?.claims.binding === 'device') {
    return effectOf('lease_use', 'the lease cannot be used or renewed without the key');
  }
  // Delivered leases are renewed elsewhere.
  if (device_id === undefined || dirname(files.lease) !== home || isLink(files.lease)) {
    return {
      status: 'skip',
      summary: 'this machine is not enrolled, so it renews no lease',
      remedy: 'To enroll it, run `service-local license enroll`.',
    };
  }
  return {
    status: 'fail',
    summary: `${files.key} is missing: the lease is for the device ${device_id}, and cannot be renewed without its key; ${await describeRemaining(facts)}`,
    evidence: { device_id },
    remedy: `Put the key back; without a copy of it, ${ENROLL_AGAIN}`,
  };
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

/** Remaining validity at which automatic renewal of a certificate should have happened. */
const CERTIFICATE_MS = 14 * DAY;
/** The same as a share of the validity, for short-lived certificates. */
const CERTIFICATE_SHARE = 1 / 6;

const server: Check<Facts> = {
  code: 'server',
  needs: ['device_key'],
  async run(facts) {
    const { url, env, clock } = facts;
    if (facts.offline) return { status: 'skip', summary: 'not checked: --offline' };
    const answer = await askIfSet(facts);
    if (answer === undefined) {
      return {
        status: 'skip',
        summary: `no server is configured, and none answers at ${url}`,
        evidence: { url },
        remedy: 'If this machine has a server, set server_url in config.yaml to its origin.',
      };
    }
    const { ms, certificate, warning, isHeld, trust } = answer;
    const ends = certificate === undefined ? null : new Date(certificate.ends).toISOString();
    const evidence = { url, ms, proxies: proxiesOf(env), certificate_ends_at: ends };
    if (certificate !== undefined) {
      const left = certificate.ends - clock();
      const share = (certificate.ends - certificate.begins) * CERTIFICATE_SHARE;
      if (left < Math.min(CERTIFICATE_MS, share)) {
        const summary = `the certificate of ${url} expires in ${formatSpan(left)}`;
        return { status: 'warn', summary, evidence, remedy: 'Inform the operator of the server.' };
      }
    }
    if (facts.otherServer !== undefined) return { status: 'warn', ...facts.otherServer, evidence };
    if (warning !== undefined) {
      const remedy = 'Enable TLS on the server, and set server_url to its https address.';
      return { status: 'warn', summary: warning, evidence, remedy };
    }
    if (isHeld) {
      return {
        status: 'warn',
        summary: `nothing trades with the database of ${url}, because it may be a copy of another one that trades`,
        evidence,
        remedy:
          'Read the log of the server, and run `service-local server adopt --help` on its machine.',
      };
    }
    if (trust.length > 0) {
      return {
        status: 'warn',
        summary: `${url} reports: ${trust.join('; ')}`,
        evidence,
        remedy: 'Inform the operator of the server.',
      };
    }
    return { status: 'ok', summary: `${url} answered in ${ms} ms`, evidence };
  },
};

/** Undefined if no server answers at the default address. */
async function askIfSet({ urlBy, server: ask }: Facts): Promise<ServerAnswer | undefined> {
  try {
    return await ask();
  } catch (error) {
    const isUnreachable = error instanceof ServiceError && error.code === 'server_unreachable';
    if (isUnreachable && urlBy === 'default') return undefined;
    throw error;
  }
}

/** Names of the variables, without their values, which may contain passwords. */
function proxiesOf(env: NodeJS.ProcessEnv): readonly string[] {
  const names = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY'].flatMap((name) => [
    name,
    name.toLowerCase(),
  ]);
  return names.filter((name) => env[name]);
}

const renewal: Check<Facts> = {
  code: 'renewal',
  needs: ['server'],
  async run(facts) {
    try {
      const { warnings, ...given } = await facts.renewal();
      const evidence = { ...given, warnings };
      // Without the lease, the server cannot distinguish this machine from a copy of it.
      const isKnown = (await facts.license()).leases.length > 0;
      if (isKnown && warnings.length > 0) {
        return {
          status: 'warn',
          summary: warnings.map(({ detail }) => detail).join('; '),
          evidence,
          remedy:
            'Make sure that no copy of this machine is running, and ask the operator of the server.',
        };
      }
      const summary = `a renewal now would give a lease until ${given.expires_at}`;
      return { status: 'ok', summary, evidence };
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      const found = refusal(error, await describeRemaining(facts));
      // Another server knows neither this device nor its keys.
      const { otherServer } = facts;
      if (otherServer === undefined) return found;
      const summary = `${found.summary}; ${otherServer.summary}`;
      return { ...found, summary, remedy: otherServer.remedy };
    }
  },
};

/** Describes how long the lease on this machine still works. */
async function describeRemaining({
  clock,
  files,
  license,
  machineHash,
  running,
}: Facts): Promise<string> {
  const lease = (await license()).leases[0];
  if (lease === undefined) return 'this machine has no lease';
  const here = await leasesHere(files, [lease], { machineHash });
  if (here.leases.length === 0) return 'its lease cannot be used on this machine';
  const { state } = statusOf(lease, clock(), await running());
  const { grace_ends_at: end } = lease.claims;
  return state === 'expired'
    ? `the lease has not worked since ${end}`
    : `the lease works until ${end}`;
}

/** Faults of the presented lease; the daemon then requests a lease without presenting one. */
const ABOUT_LEASE: ReadonlySet<string> = new Set([
  'other_device',
  'other_deployment',
  'unknown_lease',
]);

function refusal(
  { code, reason, message, remedy, retryable }: ServiceError,
  left: string,
): Finding {
  const evidence = { code, ...(reason !== undefined && { reason }), message };
  if (code === 'license_revoked') {
    const summary = `the license is revoked and cannot be renewed; ${left}`;
    return { status: 'fail', summary, evidence, remedy: ASK };
  }
  if (code === 'contract_ended') {
    const summary = `${message}; ${left}`;
    return { status: 'fail', summary, evidence, remedy: ASK };
  }
  const isAboutLease = ABOUT_LEASE.has(reason ?? '');
  const isPassing = retryable || isAboutLease;
  const advice = isAboutLease ? ABOUT_LEASE_REMEDY : remedy;
  return {
    status: isPassing && code !== 'server_unreachable' ? 'warn' : 'fail',
    summary: `${message}; ${left}`,
    evidence,
    ...(advice !== undefined && { remedy: advice }),
  };
}

const ABOUT_LEASE_REMEDY =
  'If these files come from another machine, restore the key and lease of this machine, or enroll it again with `service-local license enroll` and a new code. Otherwise run `service-local license renew --now`, which then does not present the lease.';

const ASK = 'Contact the issuer of the license.';

export const SERVER_CHECKS = [deviceKey, server, renewal] as const;
