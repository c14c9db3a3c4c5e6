import type { revokeToken } from '../../../../api/administrators.ts';
import { showItems } from '../../../show-items.ts';
import { TOKEN_COLUMNS } from '../../../tokens.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'revoke a token',
  description:
    'Revokes the token at once. With the scope admin, you can revoke any token, otherwise only your own.',
  arguments: { token: { description: 'id of the token, as list shows it' } },
  examples: ['identity tokens revoke 0198c0de-0000-7000-8000-00000000bbbb'],
  async run(server, { token: token_id }) {
    const path = '/identity/tokens/{token_id}';
    const revoked = await server.call<typeof revokeToken>('delete', path, { params: { token_id } });
    return { data: revoked, show: (out) => showItems(out, [revoked], TOKEN_COLUMNS) };
  },
});
