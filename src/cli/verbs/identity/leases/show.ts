import type { getLease } from '../../../../api/leases.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'show a lease of the registry',
  arguments: { lease: { description: 'id of the lease' } },
  examples: ['identity leases show 0198c0de-0000-7000-8000-00000000aaaa'],
  async run(server, { lease: lease_id }) {
    const path = '/identity/leases/{lease_id}';
    const lease = await server.call<typeof getLease>('get', path, { params: { lease_id } });
    return {
      data: lease,
      show: (out) =>
        out.table(
          [{ title: '' }, { title: '' }],
          Object.entries(lease)
            .filter(([, value]) => value !== null)
            .map(([name, value]) => [name, Array.isArray(value) ? value.join(' ') : String(value)]),
        ),
    };
  },
});
