/** Parts shared by the pages of bots and tasks. */
import { html } from 'hono/html';
import type { BotEvent } from '../../api/bot-state.ts';
import type { BotDetail, BotListItem } from '../../api/bots.ts';
import type { BotDeployment, Task } from '../../api/tasks.ts';
import { formatNumber, NO_VALUE } from '../../base/format.ts';
import { formatFigure } from '../../base/format-figure.ts';
import { RUN_FIGURES } from '../../base/run-figures.ts';
import { eventText } from './client/event-text.ts';
import { progressText } from './client/progress-text.ts';
import type { Child, Html } from './html.ts';
import { badge, type Column } from './parts.ts';

export const BOTS_PATH = '/console/bots';
export const TASKS_PATH = '/console/tasks';
export const COMPARE_PATH = `${TASKS_PATH}/compare`;

/** Path of a page of a bot; `ref` is its slug or id. */
export function botPath(ref: string, page = ''): string {
  return `${BOTS_PATH}/${encodeURIComponent(ref)}${page && `/${page}`}`;
}

/** Names a bot and links to its page. */
export const BOT_COLUMN: Column<BotListItem> = {
  title: 'Bot',
  isHeader: true,
  cell: ({ name, slug }) =>
    html`<a href="${botPath(slug)}">${name}</a><span class="sub">${slug}</span>`,
};

export function taskPath(task_id: string): string {
  return `${TASKS_PATH}/${encodeURIComponent(task_id)}`;
}

const KINDS = {
  active: 'good',
  draft: 'neutral',
  archived: 'neutral',
  queued: 'neutral',
  pending: 'neutral',
  running: 'good',
  success: 'good',
  failed: 'bad',
  ruined: 'bad',
  halted: 'bad',
  canceled: 'warning',
} as const;

export function status(of: keyof typeof KINDS): Html {
  return badge(KINDS[of], of);
}

/** The instruments of a bot, and whether the time of day of its bars does not matter. */
export function universeOf({ document }: BotDetail) {
  const { spec } = document as {
    readonly spec?: {
      readonly universe?: { readonly symbols?: readonly string[] };
      readonly data?: { readonly timeframe?: string };
    };
  };
  return {
    symbols: spec?.universe?.symbols ?? [],
    isDaily: /^\d+[dwM]$/.test(spec?.data?.timeframe ?? ''),
  };
}

/** Shows the time of bars, which is a day for daily bars. */
export function barTime(instant: string, isDaily: boolean): Html {
  const text = isDaily ? instant.slice(0, 10) : instant.slice(0, 19).replace('T', ' ');
  return html`<time datetime="${instant}">${text}</time>`;
}

/**
 * The status of a bot, or its halt while one is in force.
 * @param halted scope of the halt.
 */
export function botStatus(of: BotDetail['status'], halted: 'bot' | 'all' | undefined | null): Html {
  if (halted === 'bot') return badge('bad', 'halted');
  return halted === 'all' ? badge('bad', 'all halted') : status(of);
}

type RunKind = BotDeployment['target'] | Task['kind'];

function isSession(of: RunKind): boolean {
  return of === 'paper' || of === 'production' || of === 'k8s';
}

/** Stopping a session keeps its results; canceling another run discards them. */
export function endVerb(of: RunKind): 'Stop' | 'Cancel' {
  return isSession(of) ? 'Stop' : 'Cancel';
}

export function endPath(bot_ref: string, task_id: string, of: RunKind): string {
  if (!isSession(of)) return `${taskPath(task_id)}/cancel`;
  return botPath(bot_ref, `${of === 'paper' ? 'paper' : 'deploy'}/${task_id}/stop`);
}

/** Keeps the last 12 characters, in which ids differ most. */
export function shortId(id: string): string {
  return id.length > 12 ? `…${id.slice(-12)}` : id;
}

/** Columns with the main figures of a run, for tables of runs and of bots. */
export function metricColumns<Row>(
  runOf: (row: Row) => Pick<BotDeployment, 'result_summary'> | null,
) {
  return (['total_return', 'sharpe', 'max_drawdown'] as const).map((name) => ({
    name,
    title: RUN_FIGURES[name].label,
    isNumber: true as const,
    cell(row: Row): string {
      const run = runOf(row);
      if (run === null) return '';
      const metrics = run.result_summary?.['metrics'] as
        | Readonly<Record<string, unknown>>
        | undefined;
      const value = metrics?.[name];
      return formatFigure(name, typeof value === 'number' ? value : null);
    },
  }));
}

export function formatOptional(value: unknown): string {
  return typeof value === 'number' ? formatNumber(value) : NO_VALUE;
}

/** Large figures. A script of the page finds a figure with a `key` by it. */
export function figures(
  ...entries: readonly (readonly [name: string, value: Child, key?: string])[]
): Html {
  return html`<dl class="figures">
    ${entries.map(
      ([name, value, key]) =>
        html`<div>
          <dt>${name}</dt>
          <dd ${key && html`data-figure="${key}"`}>${value}</dd>
        </div>`,
    )}
  </dl>`;
}

/** The progress of a task that has begun; empty once it has ended. */
export function taskProgress({ progress, kind, status: of }: Task): Html | '' {
  if (of !== 'running') return '';
  const { done, total } = progress;
  const text = progressText(progress);
  if (total === null) return html`<span>${text}</span>`;
  return html`<progress
      max="${total}"
      value="${done}"
      aria-label="Progress of the ${kind}"
    ></progress>
    <span>${text}</span>`;
}

/** A text field for a name that may occur several times on a page; `id` must be unique. */
export function textField(
  label: string,
  name: string,
  id: string,
  attributes: Html | '' = '',
): Html {
  return html`<div class="field">
    <label for="${id}">${label}</label>
    <input id="${id}" name="${name}" type="text" autocomplete="off" ${attributes} />
  </div>`;
}

export function select(
  label: string,
  name: string,
  options: readonly string[],
  chosen: string | undefined,
): Html {
  return html`<div>
    <label for="select-${name}">${label}</label>
    <select id="select-${name}" name="${name}">
      <option value="">any</option>
      ${options.map((one) => html`<option value="${one}" ${one === chosen && html`selected`}>${one}</option>`)}
    </select>
  </div>`;
}

/**
 * A column with the summary of an event, which opens to its payload.
 * @param names of actors, by their ids; the summary shows other actors by id.
 */
export function eventDetails(names: ReadonlyMap<unknown, string> = new Map()): Column<BotEvent> {
  return {
    title: 'Details',
    cell({ kind, payload }) {
      const by = names.get(payload['by']);
      return html`<details>
        <summary>${eventText(kind, by === undefined ? payload : { ...payload, by })}</summary>
        <pre>${JSON.stringify(payload, null, 2)}</pre>
      </details>`;
    },
  };
}

/** A path with the values of a query that are defined. */
export function withQuery(path: string, query: object): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined);
  return `${path}?${new URLSearchParams(Object.fromEntries(given))}`;
}
