import { randomUUID } from 'node:crypto';
import { html } from 'hono/html';
import type { BotDetail } from '../../api/bots.ts';
import type { BotEvent, listBotEvents } from '../../api/bot-state.ts';
import type {
  cancelChatTurn,
  ChatSession,
  chatWithBot,
  getChatSession,
  listChatSessions,
} from '../../api/research.ts';
import { formatActor } from '../../base/format.ts';
import type { AnswerOf } from '../../client/route.ts';
import { agentsOf } from '../../research/agents.ts';
import { CHAT } from './assets.ts';
import { botFrame, readBot } from './bot-frame.ts';
import { botPath } from './bot-parts.ts';
import { showProposal, showTurn } from './chat-turn.ts';
import type { Html } from './html.ts';
import { csrfField, type Content } from './layout.ts';
import { emptyState, pager, time } from './parts.ts';
import type { Form, Pages, Visit } from './pages.ts';

const PATH = '/console/bots/:bot_ref/chat';
const SESSIONS = 20;
const TURNS = 50;
const PROPOSALS = 10;

type Session = AnswerOf<typeof getChatSession>;

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

function chatPath(ref: string, session_id: string): string {
  return `${botPath(ref, 'chat')}?${new URLSearchParams({ session: session_id })}`;
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
  const { query, session: login, c } = visit;
  const bot = await readBot(visit);
  if (bot.kind !== 'research') {
    return { title: bot.name, body: botFrame(bot, 'chat', showNoChat(bot)) };
  }
  const asked = form?.get('session') || c.req.param('session_id') || query('session');
  const { slug } = bot;
  const [session, sessions, proposals] = await Promise.all([
    asked === undefined ? undefined : readSession(visit, bot, asked),
    readSessions(visit, bot),
    readProposals(visit, bot),
  ]);
  const isOwn = session?.created_by === `administrator:${login.caller.administrator_id}`;
  return {
    title: bot.name,
    scripts: [CHAT],
    body: botFrame(
      bot,
      'chat',
      html`<div class="chat">
        <div class="talk">
          ${conversation(visit, bot, session, proposals)}
          ${
            session === undefined || isOwn
              ? askForm(visit, bot, session, form)
              : html`<p class="note">
                  This conversation belongs to
                  ${formatActor(session.created_by, session.created_by_name)}. To ask a question
                  yourself, <a href="${botPath(slug, 'chat')}">start a conversation</a>.
                </p>`
          }
          ${proposalsPart(bot, proposals)}
          <p class="note">
            From the command line:
            <code>service-local bots chat ${slug} "What is the return?"</code>
          </p>
        </div>
        ${conversations(bot, sessions, session?.session_id, query('cursor'))}
      </div>`,
    ),
  };
}

function showNoChat({ slug }: BotDetail): Html {
  return emptyState(
    'Only research bots answer questions. A research bot has kind: research in its file:',
    `service-local bots get ${slug}`,
  );
}

function readSession({ call }: Visit, bot: BotDetail, session_id: string): Promise<Session> {
  const path = '/bots/{bot_ref}/chat/sessions/{session_id}';
  const params = { bot_ref: bot.id, session_id };
  return call<typeof getChatSession>('get', path, { params, query: { limit: TURNS } });
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

/** Reads the newest proposals, newest first. */
async function readProposals({ call }: Visit, bot: BotDetail): Promise<readonly BotEvent[]> {
  const { items } = await call<typeof listBotEvents>('get', '/bots/{bot_ref}/state/events', {
    params: { bot_ref: bot.id },
    query: { kind: 'chat.proposal', last: 'true', limit: PROPOSALS },
  });
  return items.toReversed();
}

/** A part of the page that the script replaces when an answer ends. */
function conversation(
  visit: Visit,
  bot: BotDetail,
  session: Session | undefined,
  proposals: readonly BotEvent[],
): Html {
  const turns = session?.items ?? [];
  const isRunning = turns.at(-1)?.status === 'running';
  const isCut = session !== undefined && session.turns > turns.length;
  return html`<div id="conversation" ${isRunning && html`data-running`}>
    ${
      turns.length === 0
        ? html`<p>
            Ask about the runs of this bot, such as <q>What is the Sharpe ratio?</q> or
            <q>What can I ask?</q>
          </p>`
        : html`${isCut && html`<p class="note">The newest ${turns.length} of ${session.turns} questions.</p>`}
            <ol class="turns">
              ${turns.map((turn) => showTurn(visit, bot, turn, proposals))}
            </ol>`
    }
  </div>`;
}

/** A part of the page that the script replaces when an answer ends, also if it is empty. */
function proposalsPart(bot: BotDetail, proposals: readonly BotEvent[]): Html {
  return html`<div id="proposals">
    ${
      proposals.length > 0 &&
      html`<section>
        <h2>Proposals</h2>
        ${proposals.map((event) => showProposal(bot, event))}
      </section>`
    }
  </div>`;
}

function askForm(
  { session: login }: Visit,
  { slug, document }: BotDetail,
  session: Session | undefined,
  form: Form | undefined,
): Html {
  const agents = session === undefined ? agentsOf(document) : [];
  const chosen = form?.get('agent');
  return html`<form id="ask" method="post" action="${botPath(slug, 'chat')}" data-bot="${slug}">
    ${csrfField(login)}
    <input type="hidden" name="key" value="${randomUUID()}" />
    <input type="hidden" name="session" value="${session?.session_id ?? ''}" />
    ${
      agents.length > 0 &&
      html`<div class="field">
        <label for="agent">Who answers</label>
        <select id="agent" name="agent">
          <option value="">the bot itself</option>
          ${agents.map(({ role }) => html`<option value="${role}" ${role === chosen && html`selected`}>${role}</option>`)}
        </select>
      </div>`
    }
    <div class="field">
      <label for="prompt">Question</label>
      <textarea id="prompt" name="prompt" rows="3" maxlength="8000" required>
${form?.get('prompt') ?? ''}</textarea>
    </div>
    <p class="failure" role="alert" data-failure></p>
    <div class="actions"><button class="main">Ask</button></div>
  </form>`;
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
