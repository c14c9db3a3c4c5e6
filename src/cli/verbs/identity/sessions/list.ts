import type { listSessions } from '../../../../api/account.ts';
import { listAnswer } from '../../../list-answer.ts';
import { SESSION_COLUMNS } from '../../../account.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the browsers in which somebody is signed in',
  description:
    "Of the browsers in which somebody is signed in to the console. Everybody's for a token with the scope admin, else those of its owner.",
  settings: ['server_url'],
  examples: ['identity sessions list', 'identity sessions list --json | jq -r .sessions[].address'],
  run: (context) =>
    listAnswer<typeof listSessions>(context, 'sessions', '/identity/sessions', SESSION_COLUMNS, {}),
});
