import { existsSync, lstatSync } from 'node:fs';
import { dirname } from 'node:path';
import type { DeviceKey } from '../../client/device-key.ts';
import { ServiceError } from '../../base/errors.ts';
import { formatSpan } from '../../base/format.ts';
import { leasesHere } from '../../gate/lease-use.ts';
import { statusOf } from '../../gate/license.ts';
import { effectOf, type Check, type Finding } from '../check.ts';
import type { Facts, ServerAnswer } from '../facts.ts';

const deviceKey: Check<Facts> = {
  code: 'device_key',
  blames: ['home'],
  async look(facts) {
    const { files } = facts;
    const own = await readKey(facts);
    if (own === undefined) return withoutKey(facts);
    const { device_id } = own;
    const evidence = { device_id };
    if (existsSync(files.nextKey)) {
      return {
        status: 'warn',
        summary: `the device ${device_id} was to get another key, and that was not finished`,
        evidence,
        remedy: 'Finish it with `service-local license rotate-key`.',
      };
    }
    const { refused, leases } = await facts.license();
    const isLeased = leases.length > 0 || refused[0]?.reason !== 'missing';
    const summary = isLeased
      ? `this is the device ${device_id}`
      : `${files.key} holds the key ${device_id}; without a lease, nothing here shows that it was enrolled`;
    return { status: 'ok', summary, evidence };
  },
};

/** @throws ServiceError that says what is left and what to do */
async function readKey(facts: Facts): Promise<DeviceKey | undefined> {
  try {
    return await facts.key();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code, reason = '', message, remedy } = error;
    if (reason === 'not_private') {
      const advice = `${remedy} If anybody may have read it, change it then with \`service-local license rotate-key\`.`;
      throw new ServiceError(code, message, { reason, remedy: advice, cause: error });
    }
    if (reason !== 'not_a_key' && reason !== 'wrong_key_type') throw error;
    const summary = `${message}: the lease cannot be renewed; ${await whatIsLeft(facts)}`;
    throw new ServiceError(code, summary, {
      reason,
      remedy: `Move it away, ${ENROLL}`,
      cause: error,
    });
  }
}

const ENROLL =
  'ask for a new enrollment code, and enroll this machine again with `service-local license enroll`.';

async function withoutKey(facts: Facts): Promise<Finding> {
  const { files, home, license } = facts;
  const [lease] = (await license()).leases;
  const device_id = lease?.claims.device_thumbprint;
  if (lease?.claims.binding === 'device') {
    return effectOf('lease_use', 'the lease cannot be used or renewed without the key');
  }
  // What is delivered, others renew.
  if (device_id === undefined || dirname(files.lease) !== home || isLink(files.lease)) {
    return {
      status: 'skip',
      summary: 'this machine is no device: it renews no lease',
      remedy: 'To make it one, run `service-local license enroll`.',
    };
  }
  return {
    status: 'fail',
    summary: `${files.key} is gone: the lease is for the device ${device_id}, and cannot be renewed without it; ${await whatIsLeft(facts)}`,
    evidence: { device_id },
    remedy: `Put the key back; where there is no copy of it, ${ENROLL}`,
  };
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}

/** In which a certificate is renewed where that goes by itself. */
const CERTIFICATE_MS = 14 * 86_400_000;
/** For those that do not last long: with as little left, their renewal has failed. */
const CERTIFICATE_SHARE = 1 / 6;

const server: Check<Facts> = {
  code: 'server',
  needs: ['device_key'],
  async look(facts) {
    const { url, env, clock } = facts;
    if (facts.offline) return { status: 'skip', summary: 'not asked: --offline' };
    const answer = await askIfSet(facts);
    if (answer === undefined) {
      return {
        status: 'skip',
        summary: `no server is set, and none is at ${url}`,
        evidence: { url },
        remedy: 'If there is one for this machine, set server_url in config.yaml to its origin.',
      };
    }
    const { ms, certificate, warning, isHeld, trust } = answer;
    const ends = certificate === undefined ? null : new Date(certificate.ends).toISOString();
    const evidence = { url, ms, proxies: proxiesOf(env), certificate_ends_at: ends };
    if (certificate !== undefined) {
      const left = certificate.ends - clock();
      const share = (certificate.ends - certificate.begins) * CERTIFICATE_SHARE;
      if (left < Math.min(CERTIFICATE_MS, share)) {
        const summary = `the certificate of ${url} ends in ${formatSpan(left)}`;
        return { status: 'warn', summary, evidence, remedy: 'Tell whoever runs the server.' };
      }
    }
    if (warning !== undefined) {
      const remedy = 'Have the server speak TLS, and set server_url to its https address.';
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
        remedy: 'Tell whoever runs the server.',
      };
    }
    return { status: 'ok', summary: `${url} answered in ${ms} ms`, evidence };
  },
};

/** Undefined where there is none at an address that nobody has set. */
async function askIfSet({ urlBy, server: ask }: Facts): Promise<ServerAnswer | undefined> {
  try {
    return await ask();
  } catch (error) {
    const isUnreachable = error instanceof ServiceError && error.code === 'server_unreachable';
    if (isUnreachable && urlBy === 'default') return undefined;
    throw error;
  }
}

/** The names of those that are set: a proxy's address may hold a password. */
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
  async look(facts) {
    try {
      const { warnings, ...given } = await facts.renewal();
      const evidence = { ...given, warnings };
      // Without the lease it was given, the server cannot know this machine from a copy of it.
      const isKnown = (await facts.license()).leases.length > 0;
      if (isKnown && warnings.length > 0) {
        return {
          status: 'warn',
          summary: warnings.map(({ detail }) => detail).join('; '),
          evidence,
          remedy: 'Ask whoever runs the server, and see that no copy of this machine runs.',
        };
      }
      const summary = `asked now, the server would give a lease until ${given.expires_at}`;
      return { status: 'ok', summary, evidence };
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      return refusal(error, await whatIsLeft(facts));
    }
  },
};

/** In words for whoever needs to know until when everything works. */
async function whatIsLeft({ clock, files, license, machineHash, running }: Facts): Promise<string> {
  const lease = (await license()).leases[0];
  if (lease === undefined) return 'there is no lease here';
  const here = await leasesHere(files, [lease], { machineHash });
  if (here.leases.length === 0) return 'the lease here cannot be used on this machine';
  const { state } = statusOf(lease, clock(), await running());
  const { grace_ends_at: end } = lease.claims;
  return state === 'expired' ? `nothing works since ${end}` : `what is here works until ${end}`;
}

/** Of the lease that is presented; the daemon then asks without it. */
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
    const summary = `the license is revoked, and is not renewed any more; ${left}`;
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
  'If the files here were copied from another machine or mixed up, put back the key and the lease of this machine, or enroll it again with `service-local license enroll` and a new code. Otherwise run `service-local license renew --now`, which then asks without the lease.';

const ASK = 'Ask whoever issued the license.';

export const SERVER_CHECKS = [deviceKey, server, renewal] as const;
