import { resolve } from 'node:path';
import type { createLease, LeaseAnswer } from '../../api/leases.ts';
import { isSystemError, ServiceError } from '../../errors.ts';
import { connect } from '../connect.ts';
import { parseSeconds } from '../seconds.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'For machines that cannot renew by themselves. The signed lease is told once: the registry does not keep it. Without --out it goes to stdout.',
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
    if (file !== undefined) await writeLease(resolve(context.cwd, file), text);
    for (const line of summaryOf(answer)) context.message(line);
    return { data: answer, show: (out) => (file === undefined ? out.line(text.trimEnd()) : {}) };
  },
});

async function writeLease(path: string, text: string): Promise<void> {
  const { writeAtomically } = await import('../../atomic-file.ts');
  try {
    await writeAtomically(path, [text], { mode: 0o600 });
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new ServiceError(
      'output_not_writable',
      `the lease is issued and lost: ${error.message}`,
      {
        remedy: 'Issue another one to a file that can be written.',
        cause: error,
      },
    );
  }
}

function summaryOf(answer: LeaseAnswer): string[] {
  const { lease_id, deployment_id, expires_at, grace_ends_at, entitlements, limits } = answer;
  const gives = entitlements.join(', ') || 'nothing';
  return [
    `lease ${lease_id} for ${deployment_id}: ${gives} until ${expires_at}, with grace until ${grace_ends_at}`,
    ...limits.map(({ field, wanted, granted, because }) => {
      const why = because === 'contract_end' ? 'the contract ends' : 'the server allows no more';
      return `${field}: ${granted} instead of ${wanted}, as ${why}`;
    }),
  ];
}
