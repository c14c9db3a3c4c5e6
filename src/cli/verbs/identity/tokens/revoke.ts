import type { revokeToken } from '../../../../api/administrators.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import { TOKEN_COLUMNS } from '../../../tokens.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'end a token',
  description:
    "It ends at once. Anybody's for a token with the scope admin, else those of its owner.",
  arguments: { token: { description: 'id of the token, as list shows it' } },
  settings: ['server_url'],
  examples: ['identity tokens revoke 0198c0de-0000-7000-8000-00000000bbbb'],
  async run(context, { token: token_id }) {
    const server = await connect(context);
    const path = '/identity/tokens/{token_id}';
    const revoked = await server.call<typeof revokeToken>('delete', path, { params: { token_id } });
    return { data: revoked, show: (out) => showItems(out, [revoked], TOKEN_COLUMNS) };
  },
});
