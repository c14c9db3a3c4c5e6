import type { listPasskeys } from '../../../../api/account.ts';
import { listAnswer } from '../../../list-answer.ts';
import { PASSKEY_COLUMNS } from '../../../account.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list your passkeys',
  description:
    'Lists the passkeys of the owner of the token. To add a passkey, open the page Account of the console in the browser that will use it.',
  examples: ['identity passkeys list', 'identity passkeys list --json | jq -r .passkeys[].name'],
  run: (server) =>
    listAnswer<typeof listPasskeys>(server, 'passkeys', '/identity/passkeys', PASSKEY_COLUMNS, {}),
});
