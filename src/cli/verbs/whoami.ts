import type { getOwnToken } from '../../api/administrators.ts';
import { showItems } from '../show-items.ts';
import { TOKEN_COLUMNS } from '../tokens.ts';
import { defineServerVerb } from '../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'show who is logged in, and with which scopes',
  description:
    'Asks the server for the owner and the scopes of the token that other commands send.',
  examples: ['whoami', 'whoami --json | jq -r .token.scopes[]'],
  async run(server, _args, _options, context) {
    const token = await server.call<typeof getOwnToken>('get', '/identity/token', {});
    const { server_url } = context.settings;
    const source = context.io.env['SERVICE_LOCAL_TOKEN'] ? 'SERVICE_LOCAL_TOKEN' : 'login';
    return {
      data: { server: server_url, source, token },
      show(out) {
        out.line(`${token.administrator} at ${server_url}, by ${source}`);
        out.line();
        showItems(out, [token], TOKEN_COLUMNS);
      },
    };
  },
});
