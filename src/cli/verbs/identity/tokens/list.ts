import type { listTokens } from '../../../../api/administrators.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import { TOKEN_COLUMNS } from '../../../tokens.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the tokens',
  description: "Everybody's for a token with the scope admin, else those of its owner.",
  settings: ['server_url'],
  examples: ['identity tokens list', 'identity tokens list --json | jq -r .tokens[].label'],
  async run(context) {
    const server = await connect(context);
    const tokens = await Array.fromAsync(
      server.items<typeof listTokens>('get', '/identity/tokens', {}),
    );
    return { data: { tokens }, show: (out) => showItems(out, tokens, TOKEN_COLUMNS) };
  },
});
