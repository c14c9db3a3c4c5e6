import type { listTokens } from '../../../../api/administrators.ts';
import { listAnswer } from '../../../list-answer.ts';
import { TOKEN_COLUMNS } from '../../../tokens.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the tokens',
  description: "Everybody's for a token with the scope admin, else those of its owner.",
  examples: ['identity tokens list', 'identity tokens list --json | jq -r .tokens[].label'],
  run: (server) =>
    listAnswer<typeof listTokens>(server, 'tokens', '/identity/tokens', TOKEN_COLUMNS, {}),
});
