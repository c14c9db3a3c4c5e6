/** A conversation with a bot, on its chat page and beside the charts of its own page. */
import { randomUUID } from 'node:crypto';
import { html } from 'hono/html';
import type { BotDetail } from '../../api/bots.ts';
import type { BotEvent, listBotEvents } from '../../api/bot-state.ts';
import type { getChatSession } from '../../api/research.ts';
import { formatActor } from '../../base/format.ts';
import type { AnswerOf } from '../../client/route.ts';
import { agentsOf } from '../../research/agents.ts';
import { botPath } from './bot-parts.ts';
import { showProposal, showTurn } from './chat-turn.ts';
import type { Html } from './html.ts';
import { csrfField } from './layout.ts';
import type { Form, Visit } from './pages.ts';

const TURNS = 50;
const PROPOSALS = 10;

/** Value of `talk` in the address of the page of a bot that opens a new conversation. */
export const NEW_TALK = 'new';

type Session = AnswerOf<typeof getChatSession>;

interface Wanted {
  /** Parameter of the page with the id of the chat session. */
  readonly name: 'session' | 'talk';
  /** Id of the chat session; undefined for a new one. */
  readonly asked: string | undefined;
  /** A rejected question. */
  readonly form?: Form | undefined;
}

export function chatPath(ref: string, session_id: string): string {
  return `${botPath(ref, 'chat')}?${new URLSearchParams({ session: session_id })}`;
}

/** The conversation that continues beside the charts: closed unless the address names it. */
export async function talkBox(visit: Visit, bot: BotDetail): Promise<Html> {
  const open = visit.query('talk');
  const asked = open === NEW_TALK ? undefined : open;
  return html`<details id="talk" class="talk" ${open !== undefined && html`open`}>
    <summary><h2>Ask about this bot</h2></summary>
    ${await visit.part('The conversation', () => talkPart(visit, bot, { name: 'talk', asked }))}
    <p class="note"><a href="${botPath(bot.slug, 'chat')}">All conversations</a></p>
  </details>`;
}

export async function talkPart(visit: Visit, bot: BotDetail, wanted: Wanted): Promise<Html> {
  const { asked, name, form } = wanted;
  const [session, proposals] = await Promise.all([
    asked === undefined ? undefined : readSession(visit, bot, asked),
    // A chat makes no proposals for a trading bot.
    bot.kind === 'research' ? readProposals(visit, bot) : [],
  ]);
  const isOwn = session?.created_by === `administrator:${visit.session.caller.administrator_id}`;
  return html`${conversation(visit, bot, session, proposals)}
  ${
    session === undefined || isOwn
      ? askForm(visit, bot, session, { name, form })
      : html`<p class="note">
          This conversation belongs to ${formatActor(session.created_by, session.created_by_name)}.
          To ask a question yourself,
          <a href="${botPath(bot.slug, 'chat')}">start a conversation</a>.
        </p>`
  }
  ${proposalsPart(bot, proposals)}`;
}

function readSession({ call }: Visit, bot: BotDetail, session_id: string): Promise<Session> {
  const path = '/bots/{bot_ref}/chat/sessions/{session_id}';
  const params = { bot_ref: bot.id, session_id };
  return call<typeof getChatSession>('get', path, { params, query: { limit: TURNS } });
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
  const page =
    session === undefined ? botPath(bot.slug, 'chat') : chatPath(bot.slug, session.session_id);
  return html`<div id="conversation" data-page="${page}" ${isRunning && html`data-running`}>
    ${
      turns.length === 0
        ? html`<p>
            Ask about ${bot.kind === 'trading' ? 'the session and the runs' : 'the runs'} of this
            bot, such as
            <q
              >${bot.kind === 'trading' ? 'Which trades lost money?' : 'What is the Sharpe ratio?'}</q
            >
            or <q>What can I ask?</q>
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
  { name, form }: Pick<Wanted, 'name' | 'form'>,
): Html {
  const agents = session === undefined ? agentsOf(document) : [];
  const chosen = form?.get('agent');
  return html`<form
    id="ask"
    method="post"
    action="${botPath(slug, 'chat')}"
    data-bot="${slug}"
    data-name="${name}"
  >
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
