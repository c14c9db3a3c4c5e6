import { html } from 'hono/html';
import type { BotDetail } from '../../api/bots.ts';
import type {
  cancelChatTurn,
  ChatSession,
  chatWithBot,
  listChatSessions,
} from '../../api/research.ts';
import { formatActor } from '../../base/format.ts';
import type { AnswerOf } from '../../client/route.ts';
import { CHAT } from './assets.ts';
import { botFrame, readBot } from './bot-frame.ts';
import { botPath, withQuery } from './bot-parts.ts';
import { chatPath, NEW_TALK, talkPart } from './chat-talk.ts';
import type { Html } from './html.ts';
import type { Content } from './layout.ts';
import { pager, time } from './parts.ts';
import type { Form, Pages, Visit } from './pages.ts';

const PATH = '/console/bots/:bot_ref/chat';
const SESSIONS = 20;

export function addChat(pages: Pages): void {
  pages.get(PATH, showChat);
  pages.post(PATH, ask, showChat);
  pages.post(
    `${PATH}/:session_id/cancel`,
    async ({ call, param }) => {
      const [bot_ref, session_id] = [param('bot_ref'), param('session_id')];
      const path = '/bots/{bot_ref}/chat/sessions/{session_id}/cancel';
      await call<typeof cancelChatTurn>('post', path, { params: { bot_ref, session_id } });
      return { goTo: chatPath(bot_ref, session_id), message: 'The answer is canceled.' };
    },
    showChat,
  );
}

/** Waits for the answer, as a browser without the script of the page does. */
async function ask({ call, param }: Visit, form: Form) {
  const bot_ref = param('bot_ref');
  const [session_id, agent_role] = [form.get('session'), form.get('agent')];
  const request = {
    params: { bot_ref },
    headers: { 'idempotency-key': form.get('key') },
    body: {
      prompt: form.get('prompt'),
      ...(session_id !== '' && { session_id }),
      ...(agent_role !== '' && { agent_role }),
    },
  };
  const turn = await call<typeof chatWithBot>('post', '/bots/{bot_ref}/chat', request);
  const { session_id: own, number } = turn;
  return { goTo: `${chatPath(bot_ref, own)}#turn-${number}` };
}

async function showChat(visit: Visit, form?: Form): Promise<Content> {
  const { query, c } = visit;
  const bot = await readBot(visit);
  const asked = form?.get('session') || c.req.param('session_id') || query('session');
  const { slug, kind } = bot;
  const [talk, sessions] = await Promise.all([
    talkPart(visit, bot, { name: 'session', asked, form }),
    readSessions(visit, bot),
  ]);
  return {
    title: bot.name,
    scripts: [CHAT],
    body: botFrame(
      bot,
      'chat',
      html`<div class="chat">
        <div class="talk">
          ${talk}
          <p class="note">
            ${
              kind === 'trading' &&
              html`<a href="${withQuery(botPath(slug), { talk: asked ?? NEW_TALK })}"
                  >Continue beside the charts</a
                >. `
            }From
            the command line:
            <code>service-local bots chat ${slug} "What is the return?"</code>
          </p>
        </div>
        ${conversations(bot, sessions, asked, query('cursor'))}
      </div>`,
    ),
  };
}

function readSessions(
  { call, query }: Visit,
  bot: BotDetail,
): Promise<AnswerOf<typeof listChatSessions>> {
  return call<typeof listChatSessions>('get', '/bots/{bot_ref}/chat/sessions', {
    params: { bot_ref: bot.id },
    query: { cursor: query('cursor'), limit: SESSIONS },
  });
}

function conversations(
  { slug }: BotDetail,
  { items, next_cursor }: AnswerOf<typeof listChatSessions>,
  open: string | undefined,
  cursor: string | undefined,
): Html {
  const row = ({ session_id, first_prompt, agent_role, turns, created_at, ...rest }: ChatSession) =>
    html`<li>
      <a href="${chatPath(slug, session_id)}" ${session_id === open && html`aria-current="page"`}
        >${first_prompt}</a
      >
      <span class="sub"
        >${time(created_at)}, ${turns === 1 ? '1 question' : `${turns} questions`},
        ${formatActor(rest.created_by, rest.created_by_name)}${agent_role !== null && `, ${agent_role}`}</span
      >
    </li>`;
  return html`<nav id="conversations" class="conversations" aria-labelledby="earlier">
    <h2 id="earlier">Conversations</h2>
    ${open !== undefined && html`<p><a class="button" href="${botPath(slug, 'chat')}">New conversation</a></p>`}
    ${
      items.length === 0
        ? html`<p class="note">There is none yet.</p>`
        : html`<ul>
            ${items.map((one) => row(one))}
          </ul>`
    }
    ${pager(botPath(slug, 'chat'), { session: open, cursor }, next_cursor)}
  </nav>`;
}
