import type { listKeys } from '../../../../api/keys.ts';
import { showItems } from '../../../show-items.ts';
import { KEY_COLUMNS } from '../../../keys.ts';
import { NEEDS_ADMIN } from '../../../scopes.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the current and former signing keys',
  description: NEEDS_ADMIN,
  examples: ['identity keys list', 'identity keys list --json'],
  async run(server) {
    const { items: keys } = await server.call<typeof listKeys>('get', '/identity/keys', {});
    return { data: { keys }, show: (out) => showItems(out, keys, KEY_COLUMNS) };
  },
});
