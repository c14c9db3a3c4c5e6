import type { listPasskeys } from '../../../../api/account.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import { PASSKEY_COLUMNS } from '../../../account.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list your passkeys',
  description:
    "Those of the token's owner. One is added in the browser that is to have it: in the console, on the page Account.",
  settings: ['server_url'],
  examples: ['identity passkeys list', 'identity passkeys list --json | jq -r .passkeys[].name'],
  async run(context) {
    const server = await connect(context);
    const passkeys = await Array.fromAsync(
      server.items<typeof listPasskeys>('get', '/identity/passkeys', {}),
    );
    return { data: { passkeys }, show: (out) => showItems(out, passkeys, PASSKEY_COLUMNS) };
  },
});
