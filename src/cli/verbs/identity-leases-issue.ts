import { constants } from 'node:fs';
import { access, readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { createLease, LeaseAnswer } from '../../api/leases.ts';
import { isSystemError, ServiceError } from '../../errors.ts';
import { connect } from '../connect.ts';
import { parseSeconds } from '../../seconds.ts';
import { limitLines } from '../leases.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'For machines that cannot renew by themselves. The signed lease is told once: the registry does not keep it. Without --out it goes to stdout. With it, a lease that is there is replaced; any other file is not.',
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
    customer: { value: 'id', description: 'to be sure: to whom the deployment belongs' },
    out: { value: 'file', description: 'where to put the lease', complete: 'file' },
  },
  settings: ['server_url'],
  examples: [
    'identity leases issue --deployment acme-tokyo --out license_lease.json',
    'identity leases issue --deployment acme-tokyo --entitlement live_trading --ttl 30d > license_lease.json',
  ],
  async run(context, _args, { deployment, entitlement, ttl, grace, customer, out: file }) {
    const path = file === undefined ? undefined : resolve(context.cwd, file);
    if (path !== undefined) await checkPlace(path);
    const server = await connect(context);
    const answer = await server.call<typeof createLease>('post', '/auth/license/leases', {
      body: {
        deployment_id: deployment,
        ...(entitlement.length > 0 && { entitlements: [...entitlement] }),
        ttl_seconds: ttl,
        grace_period_seconds: grace,
        customer_id: customer,
      },
    });
    const text = `${JSON.stringify(answer.lease)}\n`;
    if (path !== undefined) await writeLease(path, text, answer.lease_id);
    for (const line of summaryOf(answer)) context.message(line);
    return {
      data: answer,
      show(out) {
        if (path === undefined) out.line(text.trimEnd());
      },
    };
  },
});

/** Before a lease is issued that could not be kept. */
async function checkPlace(path: string): Promise<void> {
  const { PAYLOAD_TYPE } = await import('../../lease/envelope.ts');
  let there: string | undefined;
  try {
    await access(dirname(path), constants.W_OK);
    there = await readFile(path, 'utf8').catch((error: unknown) => {
      if (isSystemError(error, 'ENOENT')) return undefined;
      throw error;
    });
  } catch (error) {
    throw notWritable(error, `cannot write ${path}`);
  }
  if (there === undefined || there.includes(PAYLOAD_TYPE)) return;
  throw new ServiceError('conflict', `${path} is there already, and is no lease`, {
    remedy: 'Name another file. Nothing was issued.',
  });
}

async function writeLease(path: string, text: string, leaseId: string): Promise<void> {
  const { writeAtomically } = await import('../../atomic-file.ts');
  try {
    await writeAtomically(path, [text], { mode: 0o600 });
  } catch (error) {
    throw notWritable(error, `the lease ${leaseId} is issued and lost: cannot write ${path}`);
  }
}

function notWritable(error: unknown, message: string): unknown {
  if (!isSystemError(error)) return error;
  return new ServiceError('output_not_writable', `${message} (${error.code})`, {
    remedy: 'Name a file in a directory that is there and that you may write to.',
    cause: error,
  });
}

function summaryOf(answer: LeaseAnswer): string[] {
  const { lease_id, deployment_id, expires_at, grace_ends_at, entitlements, limits } = answer;
  const gives = entitlements.join(', ') || 'nothing';
  return [
    `lease ${lease_id} for ${deployment_id}: ${gives} until ${expires_at}, with grace until ${grace_ends_at}`,
    ...limitLines(limits),
  ];
}
