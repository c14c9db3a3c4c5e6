import type { listSessions } from '../../../../api/account.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import { SESSION_COLUMNS } from '../../../account.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the browsers in which somebody is signed in',
  description:
    "Of the browsers in which somebody is signed in to the console. Everybody's for a token with the scope admin, else those of its owner.",
  settings: ['server_url'],
  examples: ['identity sessions list', 'identity sessions list --json | jq -r .sessions[].address'],
  async run(context) {
    const server = await connect(context);
    const sessions = await Array.fromAsync(
      server.items<typeof listSessions>('get', '/identity/sessions', {}),
    );
    return { data: { sessions }, show: (out) => showItems(out, sessions, SESSION_COLUMNS) };
  },
});
