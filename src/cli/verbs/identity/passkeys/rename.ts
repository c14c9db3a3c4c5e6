import type { renamePasskey } from '../../../../api/account.ts';
import { showItems } from '../../../show-items.ts';
import { PASSKEY_COLUMNS } from '../../../account.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'rename a passkey',
  arguments: {
    passkey: { description: 'id of the passkey, as list shows it' },
    name: { description: 'new name, such as Laptop' },
  },
  examples: ['identity passkeys rename 0198c0de-0000-7000-8000-00000000dddd Laptop'],
  async run(server, { passkey: passkey_id, name }) {
    const path = '/identity/passkeys/{passkey_id}';
    const request = { params: { passkey_id }, body: { name } };
    const renamed = await server.call<typeof renamePasskey>('patch', path, request);
    return { data: renamed, show: (out) => showItems(out, [renamed], PASSKEY_COLUMNS) };
  },
});
