import type { renamePasskey } from '../../../../api/account.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import { PASSKEY_COLUMNS } from '../../../account.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'give a passkey another name',
  arguments: {
    passkey: { description: 'id of the passkey, as list shows it' },
    name: { description: 'such as Laptop' },
  },
  settings: ['server_url'],
  examples: ['identity passkeys rename 0198c0de-0000-7000-8000-00000000dddd Laptop'],
  async run(context, { passkey: passkey_id, name }) {
    const server = await connect(context);
    const path = '/identity/passkeys/{passkey_id}';
    const request = { params: { passkey_id }, body: { name } };
    const renamed = await server.call<typeof renamePasskey>('patch', path, request);
    return { data: renamed, show: (out) => showItems(out, [renamed], PASSKEY_COLUMNS) };
  },
});
