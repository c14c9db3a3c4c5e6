import type { retireKey } from '../../../../api/keys.ts';
import { showItems } from '../../../show-items.ts';
import { KEY_COLUMNS } from '../../../keys.ts';
import { NEEDS_ADMIN } from '../../../scopes.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'retire a signing key permanently',
  description: `Leases under a retired key are no longer trusted, and the key cannot be used again. Fails while a lease under the key can still be in its grace period. ${NEEDS_ADMIN}`,
  arguments: { key: { description: 'id of the public key' } },
  examples: ['identity keys retire kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k'],
  async run(server, { key: public_key_id }) {
    const path = '/identity/keys/{public_key_id}/retire';
    const key = await server.call<typeof retireKey>('post', path, { params: { public_key_id } });
    return { data: key, show: (out) => showItems(out, [key], KEY_COLUMNS) };
  },
});
