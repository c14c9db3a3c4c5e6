import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import type { dryRunRenewal, LeaseAnswer } from '../../api/leases.ts';
import { connectAsDevice } from '../../client/lease-server.ts';
import { ServiceError } from '../../errors.ts';
import { formatSpan } from '../../format.ts';
import { statusOf } from '../../gate/license.ts';
import type { Check, Finding } from '../check.ts';
import type { Facts } from '../facts.ts';

const deviceKey: Check<Facts> = {
  code: 'device_key',
  blames: ['home'],
  async look({ files, key }) {
    const own = await key();
    if (own === undefined) {
      return {
        status: 'skip',
        summary: 'this machine is no device: it renews no lease',
        remedy: 'To make it one, run `service-local license enroll`.',
      };
    }
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
    return { status: 'ok', summary: `this is the device ${device_id}`, evidence };
  },
};

/** In which a certificate is renewed where that goes by itself. */
const CERTIFICATE_MS = 14 * 86_400_000;

const server: Check<Facts> = {
  code: 'server',
  needs: ['device_key'],
  async look({ url, env, clock, server: ask }) {
    const answer = await ask();
    if (answer === undefined) return { status: 'skip', summary: 'not asked: --offline' };
    const { ms, certificateEnds, warning } = answer;
    const ends = certificateEnds === undefined ? null : new Date(certificateEnds).toISOString();
    const evidence = { url, ms, proxies: proxiesOf(env), certificate_ends_at: ends };
    if (certificateEnds !== undefined && certificateEnds - clock() < CERTIFICATE_MS) {
      return {
        status: 'warn',
        summary: `the certificate of ${url} ends in ${formatSpan(certificateEnds - clock())}`,
        evidence,
        remedy: 'Tell whoever runs the server.',
      };
    }
    if (warning !== undefined) {
      const remedy = 'Have the server speak TLS, and set server_url to its https address.';
      return { status: 'warn', summary: warning, evidence, remedy };
    }
    return { status: 'ok', summary: `${url} answered in ${ms} ms`, evidence };
  },
};

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
      const { warnings, ...given } = await dryRun(facts);
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

/** Asks what the next renewal would ask. */
async function dryRun({ url, timeoutMs, clock, key, license, state }: Facts) {
  const held = (await license()).leases[0];
  const { pending } = await state();
  const isSame = pending !== null && pending.lease_id === (held?.claims.lease_id ?? null);
  const lease = isSame && pending.without_lease ? undefined : held;
  const renewal_id = isSame ? pending.renewal_id : randomUUID();
  const client = connectAsDevice({ url, timeoutMs, clock }, (await key())!);
  return client.call<typeof dryRunRenewal>('post', '/auth/license/leases/dry-run', {
    body: {
      renewal_id,
      ...(lease && { lease: JSON.parse(lease.text) as LeaseAnswer['lease'] }),
    },
  });
}

/** In words for whoever needs to know until when everything works. */
async function whatIsLeft({ clock, license, running }: Facts): Promise<string> {
  const lease = (await license()).leases[0];
  if (lease === undefined) return 'there is no lease here';
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
  const isPassing = retryable || ABOUT_LEASE.has(reason ?? '');
  return {
    status: isPassing && code !== 'server_unreachable' ? 'warn' : 'fail',
    summary: `${message}; ${left}`,
    evidence,
    ...(remedy !== undefined && { remedy }),
  };
}

const ASK = 'Ask whoever issued the license.';

export const SERVER_CHECKS = [deviceKey, server, renewal] as const;
