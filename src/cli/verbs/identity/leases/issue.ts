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
  summary: 'issue a lease for a machine that cannot renew by itself',
  description:
    'For machines that cannot renew by themselves. The signed lease is told once: the registry does not keep it. Without --out it goes to stdout. With it, a lease that is there is replaced; any other file is not. With the request of a machine, the lease is for this machine alone, and the keys that verify it are put beside it.',
  options: {
    deployment: { value: 'id', description: 'for which it is', required: true },
    entitlement: {
      value: 'name',
      description: 'a feature that the contract gives; repeat it (default: all of them)',
      repeat: true,
    },
    ttl: { value: 'length', description: 'how long it lasts, such as 7d', parse: parseSeconds },
    grace: {
      value: 'length',
      description: 'how long it then works on, such as 3d',
      parse: parseSeconds,
    },
    customer: { value: 'id', description: 'to be sure: to whom the installation belongs' },
    request: {
      value: 'file',
      description: 'what `license export-request` wrote on the machine',
      complete: 'file',
    },
    out: { value: 'file', description: 'where to put the lease', complete: 'file' },
    dryRun: { description: 'only tell what it would be' },
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
      const lines = [`It would be for ${termsOf(data)}.`, ...formatLimits(data.limits)];
      return { data, show: (output) => lines.forEach((line) => output.line(line)) };
    }
    const asked = request === undefined ? undefined : await readRequest(context.cwd, request);
    const out = file === undefined ? undefined : await leaseAt(resolve(context.cwd, file));
    if (out !== undefined) await checkOutFile(out);
    const server = await connect(context);
    // First what can be asked for again: the lease is told once.
    const keyset = asked && (await keysetOf(server));
    const answer = await server.call<typeof createLease>('post', '/auth/license/leases', {
      body: { ...wanted, offline_request: asked?.jwt },
    });
    const text = `${JSON.stringify(keyset ? { lease: answer.lease, keyset } : answer.lease)}\n`;
    if (out !== undefined) {
      const lost = `the lease ${answer.lease_id} is issued and lost: cannot write ${out.path}`;
      await writeOutFile(out, text, lost);
    }
    if (asked) context.message(`asked for ${asked.by}`);
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
  /** Who asked, and when by their clock; only the server checks that it is so. */
  readonly by: string;
}

/** @throws ServiceError `file_not_found`; `invalid_data` for what is no request */
async function readRequest(cwd: string, file: string): Promise<Asked> {
  const path = resolve(cwd, file);
  const jwt = (await readNamedFile(path)).trim();
  try {
    const payload = Buffer.from(jwt.split('.')[1]!, 'base64url').toString();
    const { iat, sub, name } = JSON.parse(payload) as OfflineRequestClaims;
    return { jwt, by: `by the device ${sub} (${name}) at ${formatTime(iat * 1000)}` };
  } catch {
    throw new ServiceError('invalid_data', `${path} is no request of a machine`, {
      remedy: 'Name the file that `service-local license export-request` wrote there.',
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
