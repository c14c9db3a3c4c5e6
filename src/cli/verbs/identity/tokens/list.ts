import type { listTokens } from '../../../../api/administrators.ts';
import { listAnswer } from '../../../list-answer.ts';
import { TOKEN_COLUMNS } from '../../../tokens.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the tokens',
  description:
    'Lists the tokens of all administrators with the scope admin, otherwise only your own.',
  examples: ['identity tokens list', 'identity tokens list --json | jq -r .tokens[].label'],
  run: (server) =>
    listAnswer<typeof listTokens>(server, 'tokens', '/identity/tokens', TOKEN_COLUMNS, {}),
});
