import type { getLease } from '../../../../api/leases.ts';
import { connect } from '../../../connect.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'show a lease of the registry',
  arguments: { lease: { description: 'id of the lease' } },
  settings: ['server_url'],
  examples: ['identity leases show 0198c0de-0000-7000-8000-00000000aaaa'],
  async run(context, { lease: lease_id }) {
    const server = await connect(context);
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
