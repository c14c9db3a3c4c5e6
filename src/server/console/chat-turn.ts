/** Turns of a conversation and proposals, as they are stored. All texts may be those of a model. */
import { html } from 'hono/html';
import type { BotDetail } from '../../api/bots.ts';
import type { BotEvent } from '../../api/bot-state.ts';
import type { ChatTurn } from '../../api/research.ts';
import { formatNumber, NO_VALUE } from '../../base/format.ts';
import { diffTable } from './bot-versions.ts';
import { botPath, shortId, taskPath } from './bot-parts.ts';
import { pageOfSource } from './chat-sources.ts';
import type { Child, Html } from './html.ts';
import { csrfField, sentence } from './layout.ts';
import { badge, time } from './parts.ts';
import type { Visit } from './pages.ts';

/** Fields of the payload of `chat.proposal` in use. */
interface Proposal {
  readonly proposal_id: string;
  readonly base_version: number;
  readonly changes: readonly {
    readonly pointer: string;
    readonly kind: string;
    readonly from?: unknown;
    readonly to?: unknown;
  }[];
  readonly apply_with: string;
  readonly rationale: string;
  readonly task_id: string;
}

type Proposed = Pick<BotEvent, 'occurred_at' | 'payload'>;

const ID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;

const proposalOf = ({ payload }: Proposed): Proposal => payload as unknown as Proposal;

function cancelPath(slug: string, session_id: string): string {
  return botPath(slug, `chat/${encodeURIComponent(session_id)}/cancel`);
}

/** @param proposals events, of which those during the turn are linked. */
export function showTurn(
  { session }: Pick<Visit, 'session'>,
  { slug }: Pick<BotDetail, 'slug'>,
  turn: ChatTurn,
  proposals: readonly Proposed[],
): Html {
  const { prompt, answer, status, citations, started_at, ended_at } = turn;
  const own = proposals.filter(
    ({ occurred_at: at }) => at >= started_at && (ended_at === null || at <= ended_at),
  );
  return html`<li id="turn-${turn.number}">
    <article class="turn" aria-label="Question ${turn.number}">
      <p class="asked">${prompt}</p>
      ${turn.tool_calls.length > 0 && toolCalls(turn)}
      ${answer !== '' && html`<div class="answer">${answer}</div>`}
      ${
        status === 'running' &&
        html`<div class="actions">
          ${badge('neutral', 'answering')}
          <form method="post" action="${cancelPath(slug, turn.session_id)}">
            ${csrfField(session)}<button>Cancel the answer</button>
          </form>
          <noscript><a class="button" href="">Reload to see the rest</a></noscript>
        </div>`
      }
      ${turn.error !== null && failure(turn.error)}
      ${
        turn.stopped_by !== null &&
        html`<p class="note warning">
          The answer is incomplete: the limit on ${turn.stopped_by} was reached.
        </p>`
      }
      ${own.map((event) => {
        const { proposal_id } = proposalOf(event);
        return html`<p>
          <a href="#proposal-${proposal_id}">The proposal that this answer made</a>
        </p>`;
      })}
      ${citations.length > 0 && sources(turn)} ${origin(turn)}
    </article>
  </li>`;
}

function toolCalls({ tool_calls }: ChatTurn): Html {
  const count = tool_calls.length;
  return html`<details class="calls">
    <summary>${count === 1 ? 'One lookup' : `${count} lookups`}</summary>
    <ul>
      ${tool_calls.map(
        ({ tool, args, error }) =>
          html`<li>
            <code>${tool} ${args}</code
            >${error !== null && html` <span class="failure">${sentence(error)}</span>`}
          </li>`,
      )}
    </ul>
  </details>`;
}

function failure({ detail, remedy }: NonNullable<ChatTurn['error']>): Html {
  return html`<p class="message failure">
    ${sentence(detail)}${remedy !== undefined && html` ${sentence(remedy)}`}
  </p>`;
}

/** A source may be several paths, separated by spaces. */
function sources({ citations, session_id }: ChatTurn): Html {
  return html`<details class="sources" open>
    <summary>Sources</summary>
    <ul>
      ${citations.map(
        ({ figure, value, source, times }) =>
          html`<li>
            ${figure !== undefined && html`${figure} <strong>${formatValue(value)}</strong> `}
            ${source.split(' ').map((one) => sourceLink(one, { times, talk: session_id }))}
          </li>`,
      )}
    </ul>
  </details>`;
}

function formatValue(value: ChatTurn['citations'][number]['value']): string {
  return typeof value === 'number' ? formatNumber(value) : String(value ?? NO_VALUE);
}

/**
 * Ids in the text of the link are shortened, as elsewhere on the console. If the page shows the chart of
 * the run, the link moves it; see `client/chat.ts`.
 */
function sourceLink(source: string, place: NonNullable<Parameters<typeof pageOfSource>[1]>): Child {
  const page = pageOfSource(source, place);
  if (page === undefined) return html`<code>${source}</code> `;
  const { times } = place;
  const [run] = /(?<=^\/tasks\/|[?&]run_id=)[\w-]+/.exec(source) ?? [];
  const moves =
    times &&
    run &&
    html`data-run="${run}" data-from="${times.from}" data-to="${times.to}"
    ${times.symbol !== undefined && html`data-symbol="${times.symbol}"`}`;
  return html`<a class="source" href="${page}" title="${source}" ${moves}
    ><code>${source.replace(ID, shortId)}</code></a
  > `;
}

function origin({ is_language_model, model, usage, started_at }: ChatTurn): Html {
  const { requests, input_tokens, output_tokens } = usage;
  return html`<p class="note">
    ${
      is_language_model
        ? html`${model}, ${requests} requests, ${input_tokens} input and ${output_tokens} output
          tokens, `
        : 'Embedded analyst, '
    }${time(started_at)}
  </p>`;
}

/** Differences of a proposal, and the command with which a person applies it. */
export function showProposal(
  { current_version }: Pick<BotDetail, 'current_version'>,
  event: Proposed,
): Html {
  const { proposal_id, base_version, changes, apply_with, rationale, task_id } = proposalOf(event);
  const id = `proposal-${proposal_id}`;
  return html`<article class="proposal" id="${id}" aria-labelledby="${id}-title">
    <h3 id="${id}-title">Proposal of ${time(event.occurred_at)}</h3>
    <blockquote class="answer">${rationale}</blockquote>
    ${diffTable(
      `Changes of the proposal of ${event.occurred_at}`,
      [`Version ${base_version}`, 'Proposed'],
      changes.map(({ pointer, ...rest }) => ({ ...rest, where: pointer })),
    )}
    <p><a href="${taskPath(task_id)}">Backtest of the proposal</a></p>
    ${
      current_version === base_version
        ? html`<p>The console does not apply proposals. To apply it:</p>
            <pre id="apply-${proposal_id}">${apply_with}</pre>
            <p>
              <button type="button" data-copy="apply-${proposal_id}" hidden>
                Copy the command
              </button>
            </p>`
        : html`<p class="note">
            It was made for version ${base_version}. The bot is at version ${current_version} now,
            so it can no longer be applied.
          </p>`
    }
  </article>`;
}
