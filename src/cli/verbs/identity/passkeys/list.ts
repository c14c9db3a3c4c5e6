import type { listPasskeys } from '../../../../api/account.ts';
import { listAnswer } from '../../../list-answer.ts';
import { PASSKEY_COLUMNS } from '../../../account.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list your passkeys',
  description:
    "Those of the token's owner. One is added in the browser that is to have it: in the console, on the page Account.",
  examples: ['identity passkeys list', 'identity passkeys list --json | jq -r .passkeys[].name'],
  run: (server) =>
    listAnswer<typeof listPasskeys>(server, 'passkeys', '/identity/passkeys', PASSKEY_COLUMNS, {}),
});
