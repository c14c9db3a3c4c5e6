import type { endSession, endSessions } from '../../../../api/account.ts';
import { ServiceError } from '../../../../base/errors.ts';
import { formatCountOf } from '../../../../base/format.ts';
import { connect } from '../../../connect.ts';
import { showItems } from '../../../show-items.ts';
import { SESSION_COLUMNS } from '../../../account.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'sign a browser, or all your browsers, out of the console',
  description:
    'Ends login sessions at once; their browsers must sign in again. With the scope admin, you can end the session of any administrator, otherwise only your own. Tokens stay valid; to end them, use `identity tokens revoke`.',
  arguments: {
    session: { description: 'id of the session, as list shows it', optional: true },
  },
  options: { all: { description: 'end all sessions of the owner of the token' } },
  settings: ['server_url'],
  examples: [
    'identity sessions end 0198c0de-0000-7000-8000-00000000cccc',
    'identity sessions end --all',
  ],
  async run(context, { session: session_id }, { all }) {
    if ((session_id === undefined) !== all) {
      throw new ServiceError('usage', 'specify either a session or --all', {
        remedy: 'See `service-local identity sessions list`.',
      });
    }
    const server = await connect(context);
    if (session_id === undefined) {
      const ended = await server.call<typeof endSessions>('delete', '/identity/sessions', {});
      return {
        data: ended,
        show: (out) => out.line(`Ended: ${formatCountOf(ended.ended, 'session')}.`),
      };
    }
    const path = '/identity/sessions/{session_id}';
    const params = { session_id };
    const ended = await server.call<typeof endSession>('delete', path, { params });
    return { data: ended, show: (out) => showItems(out, [ended], SESSION_COLUMNS) };
  },
});
