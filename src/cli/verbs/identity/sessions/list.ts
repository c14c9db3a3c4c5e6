import type { listSessions } from '../../../../api/account.ts';
import { listAnswer } from '../../../list-answer.ts';
import { SESSION_COLUMNS } from '../../../account.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the browsers that are signed in to the console',
  description:
    'Lists the login sessions of browsers: of all administrators with the scope admin, otherwise only your own.',
  examples: ['identity sessions list', 'identity sessions list --json | jq -r .sessions[].address'],
  run: (server) =>
    listAnswer<typeof listSessions>(server, 'sessions', '/identity/sessions', SESSION_COLUMNS, {}),
});
