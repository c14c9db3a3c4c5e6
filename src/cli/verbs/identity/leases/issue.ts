import { resolve } from 'node:path';
import type { getKeyset } from '../../../../api/keys.ts';
import type { createLease, DryRun, dryRunRenewal, LeaseAnswer } from '../../../../api/leases.ts';
import type { Client } from '../../../../client/client.ts';
import { ServiceError } from '../../../../base/errors.ts';
import { formatTime } from '../../../../lease/time.ts';
import type { OfflineRequestClaims } from '../../../../base/proof-claims.ts';
import { parseSeconds } from '../../../../base/seconds.ts';
import { connect } from '../../../connect.ts';
import { formatLimits } from '../../../leases.ts';
import { readNamedFile } from '../../../read-named-file.ts';
import { checkOutFile, writeOutFile, type OutFile } from '../../../out-file.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'issue a lease for a machine that cannot renew automatically',
  description:
    'For machines that cannot renew automatically. The signed lease is returned only once, because the registry does not store it. It is printed to stdout, or written to --out, which replaces an existing lease but no other file. With the request of a machine, the lease is valid only for that machine, and the output includes the keys that verify it.',
  options: {
    deployment: { value: 'id', description: 'installation of the lease', required: true },
    entitlement: {
      value: 'name',
      description: 'a feature of the contract; repeat it for several (default: all features)',
      repeat: true,
    },
    ttl: { value: 'length', description: 'lifetime of the lease, such as 7d', parse: parseSeconds },
    grace: {
      value: 'length',
      description: 'grace period after its end, such as 3d',
      parse: parseSeconds,
    },
    customer: { value: 'id', description: 'fail unless the installation belongs to this customer' },
    request: {
      value: 'file',
      description: 'request that `license export-request` wrote on the machine',
      complete: 'file',
    },
    out: { value: 'file', description: 'file for the lease', complete: 'file' },
    dryRun: { description: 'show the lease without issuing it' },
  },
  settings: ['server_url'],
  examples: [
    'identity leases issue --deployment acme-tokyo --out license_lease.json',
    'identity leases issue --deployment acme-tokyo --entitlement live_trading --ttl 30d > license_lease.json',
    'identity leases issue --deployment acme-tokyo --ttl 365d --dry-run',
    'identity leases issue --deployment acme-tokyo --request request.jwt --out lease.json',
  ],
  async run(context, _args, options) {
    const { deployment, entitlement, ttl, grace, customer, request, out: file, dryRun } = options;
    const wanted = {
      deployment_id: deployment,
      ...(entitlement.length > 0 && { entitlements: [...entitlement] }),
      ttl_seconds: ttl,
      grace_period_seconds: grace,
      customer_id: customer,
    };
    if (dryRun) {
      if (request !== undefined || file !== undefined) {
        throw new ServiceError('usage', '--dry-run excludes --request and --out');
      }
      const server = await connect(context);
      const path = '/auth/license/leases/dry-run';
      const data = await server.call<typeof dryRunRenewal>('post', path, { body: wanted });
      const lines = [`The lease would be for ${termsOf(data)}.`, ...formatLimits(data.limits)];
      return { data, show: (output) => lines.forEach((line) => output.line(line)) };
    }
    const asked = request === undefined ? undefined : await readRequest(context.cwd, request);
    const out = file === undefined ? undefined : await leaseAt(resolve(context.cwd, file));
    if (out !== undefined) await checkOutFile(out);
    const server = await connect(context);
    // The lease is returned only once, so everything that can be requested again comes first.
    const keyset = asked && (await keysetOf(server));
    const answer = await server.call<typeof createLease>('post', '/auth/license/leases', {
      body: { ...wanted, offline_request: asked?.jwt },
    });
    const text = `${JSON.stringify(keyset ? { lease: answer.lease, keyset } : answer.lease)}\n`;
    if (out !== undefined) {
      const lost = `the lease ${answer.lease_id} was issued but is lost: cannot write ${out.path}`;
      await writeOutFile(out, text, lost);
    }
    if (asked) context.message(`requested ${asked.by}`);
    for (const line of summaryOf(answer)) context.message(line);
    return {
      data: keyset ? { ...answer, keyset } : answer,
      show(output) {
        if (out === undefined) output.line(text.trimEnd());
      },
    };
  },
});

interface Asked {
  readonly jwt: string;
  /** The device that requested the lease, and the time by its clock. Not verified here. */
  readonly by: string;
}

/** @throws ServiceError `file_not_found`; `invalid_data` if the file is not a request */
async function readRequest(cwd: string, file: string): Promise<Asked> {
  const path = resolve(cwd, file);
  const jwt = (await readNamedFile(path)).trim();
  try {
    const payload = Buffer.from(jwt.split('.')[1]!, 'base64url').toString();
    const { iat, sub, name } = JSON.parse(payload) as OfflineRequestClaims;
    return { jwt, by: `by the device ${sub} (${name}) at ${formatTime(iat * 1000)}` };
  } catch {
    throw new ServiceError('invalid_data', `${path} is not a lease request`, {
      remedy: 'Specify the file that `service-local license export-request` wrote on the machine.',
    });
  }
}

async function leaseAt(path: string): Promise<OutFile> {
  const { PAYLOAD_TYPE } = await import('../../../../lease/envelope.ts');
  return { path, kind: 'a lease', isOne: (text) => text.includes(PAYLOAD_TYPE) };
}

function keysetOf(server: Client) {
  return server.call<typeof getKeyset>('get', '/.well-known/license-keys.json', {});
}

function summaryOf(answer: LeaseAnswer): string[] {
  return [`lease ${answer.lease_id} for ${termsOf(answer)}`, ...formatLimits(answer.limits)];
}

function termsOf({ deployment_id, expires_at, grace_ends_at, entitlements }: DryRun): string {
  const gives = entitlements.join(', ') || 'nothing';
  return `${deployment_id}: ${gives} until ${expires_at}, with grace until ${grace_ends_at}`;
}
