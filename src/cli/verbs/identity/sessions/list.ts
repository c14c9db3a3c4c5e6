import type { listSessions } from '../../../../api/account.ts';
import { listAnswer } from '../../../list-answer.ts';
import { SESSION_COLUMNS } from '../../../account.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the browsers in which somebody is signed in',
  description:
    "Of the browsers in which somebody is signed in to the console. Everybody's for a token with the scope admin, else those of its owner.",
  examples: ['identity sessions list', 'identity sessions list --json | jq -r .sessions[].address'],
  run: (server) =>
    listAnswer<typeof listSessions>(server, 'sessions', '/identity/sessions', SESSION_COLUMNS, {}),
});
