import type { listPasskeys } from '../../../../api/account.ts';
import { listAnswer } from '../../../list-answer.ts';
import { PASSKEY_COLUMNS } from '../../../account.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list your passkeys',
  description:
    "Those of the token's owner. One is added in the browser that is to have it: in the console, on the page Account.",
  settings: ['server_url'],
  examples: ['identity passkeys list', 'identity passkeys list --json | jq -r .passkeys[].name'],
  run: (context) =>
    listAnswer<typeof listPasskeys>(context, 'passkeys', '/identity/passkeys', PASSKEY_COLUMNS, {}),
});
