import type { listTokens } from '../../../../api/administrators.ts';
import { listAnswer } from '../../../list-answer.ts';
import { TOKEN_COLUMNS } from '../../../tokens.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the tokens',
  description: "Everybody's for a token with the scope admin, else those of its owner.",
  settings: ['server_url'],
  examples: ['identity tokens list', 'identity tokens list --json | jq -r .tokens[].label'],
  run: (context) =>
    listAnswer<typeof listTokens>(context, 'tokens', '/identity/tokens', TOKEN_COLUMNS, {}),
});
