import type { CitedTimes } from '../../research/answering.ts';
import { botPath, taskPath, withQuery } from './bot-parts.ts';
import { HALTS_PATH } from './halt-banner.ts';

/** Path of the page with the rows of a table of a run around one of them. */
export function rowsPath(task_id: string, file: string, row: string): string {
  return `${taskPath(task_id)}/rows/${encodeURIComponent(file)}?row=${encodeURIComponent(row)}#row`;
}

/**
 * Path of the page of a run whose report shows a trade on the price chart.
 * @param row of the trade in `trades.csv`, from 2.
 */
export function tradePath(task_id: string, row: number | string): string {
  return `${taskPath(task_id)}?row=${row}#report`;
}

/** Where a citation is, besides its source. */
interface Place {
  readonly times?: CitedTimes | undefined;
  /** Id of the chat session with the answer. */
  readonly talk?: string;
}

/**
 * Finds the page of the console that shows what a citation names. A trade and a point of the equity curve
 * open on the chart of their run.
 *
 * @param source path of the API, with an optional fragment; see `Citation`. A language model may
 * have chosen its parts.
 * @returns undefined if no page shows it.
 */
export function pageOfSource(source: string, place: Place = {}): string | undefined {
  const base = 'http://own.invalid';
  if (!source.startsWith('/') || !URL.canParse(source, base)) return undefined;
  const { origin, pathname, searchParams, hash } = new URL(source, base);
  if (origin !== base) return undefined;
  let parts: string[];
  try {
    parts = pathname.split('/').slice(1).map(decodeURIComponent);
  } catch {
    return undefined;
  }
  // A part such as `..` would name another page.
  if (parts.some((part) => /^\.*$|[/\\]/.test(part))) return undefined;
  const [area, ref, ...rest] = parts;
  if (area === 'halts') return HALTS_PATH;
  if (ref === undefined) return undefined;
  if (area === 'tasks') return pageOfTask(ref, rest, hash, place);
  return area === 'bots' ? pageOfBot(ref, rest, searchParams, place) : undefined;
}

function pageOfTask(
  task_id: string,
  [what, file]: readonly string[],
  hash: string,
  { times }: Place,
): string | undefined {
  if (what === 'files' && file?.endsWith('.csv') === true) {
    const [, row] = /^#cell=(\d+),\d+$/.exec(hash) ?? [];
    if (file === 'trades.csv' && Number(row) > 1) return tradePath(task_id, row!);
    if (file === 'equity.csv' && times !== undefined) {
      return `${withQuery(taskPath(task_id), { at: times.from })}#report`;
    }
    return rowsPath(task_id, file, row ?? '2');
  }
  return taskPath(task_id);
}

function pageOfBot(
  ref: string,
  [what, which, more]: readonly string[],
  query: URLSearchParams,
  { times, talk }: Place,
): string {
  const run = query.get('run_id');
  if (what === 'state' && times !== undefined && run !== null) {
    const at = times.from === times.to ? times.from : `${times.from}/${times.to}`;
    return `${withQuery(botPath(ref), { session: run, chart: times.symbol, at, talk })}#charts`;
  }
  if (what === 'versions') {
    const to = query.get('to');
    return more === 'diff' && to !== null
      ? `${botPath(ref, 'versions')}?${new URLSearchParams({ from: which!, to })}#diff`
      : botPath(ref, 'versions');
  }
  if (what === 'deployments') return botPath(ref, 'runs');
  if (what !== 'state') return botPath(ref);
  const after = query.get('after_seq');
  const seq =
    which === 'events' && after !== null ? String(Number(after) + 1) : query.get('at_seq');
  return seq !== null && /^[1-9]\d*$/.test(seq)
    ? `${botPath(ref, 'events')}?at_seq=${seq}`
    : botPath(ref, 'events');
}
