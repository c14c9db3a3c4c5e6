import type { listKeys } from '../../../../api/keys.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import { KEY_COLUMNS } from '../../../keys.ts';
import { NEEDS_ADMIN } from '../../../scopes.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the keys that sign, and those that did',
  description: NEEDS_ADMIN,
  settings: ['server_url'],
  examples: ['identity keys list', 'identity keys list --json'],
  async run(context) {
    const server = await connect(context);
    const { items: keys } = await server.call<typeof listKeys>('get', '/identity/keys', {});
    return { data: { keys }, show: (out) => showItems(out, keys, KEY_COLUMNS) };
  },
});
