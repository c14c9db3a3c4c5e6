import { ServiceError } from '../../errors.ts';
import { at, read, withQuery, type Ask } from '../ask.ts';
import type { AnalystAnswer } from './analyst.ts';

/** A question that the analyst knows, and how it is answered. */
export interface KnownQuestion {
  /** As a person would ask it. */
  readonly example: string;
  /** Of the prompt in lower-case words. */
  readonly pattern: RegExp;
  readonly answer: (ask: Ask, bot: string, signal: AbortSignal) => Promise<AnalystAnswer>;
}

export const QUESTIONS: readonly KnownQuestion[] = [
  figure('What is the Sharpe ratio?', /\bsharpe\b/, 'risk', 'sharpe', 'The Sharpe ratio is'),
  figure(
    'What is the maximum drawdown?',
    /\bdraw ?down\b/,
    'risk',
    'max_drawdown',
    'The maximum drawdown is',
  ),
  figure(
    'What is the total return?',
    /\breturn(s|ed)?\b/,
    'returns',
    'total',
    'The total return is',
  ),
  figure('How many trades were there?', /\btrades?\b/, 'trades', 'count', 'The closed trades are'),
];

/** A question about one figure of the newest result. */
function figure(
  example: string,
  pattern: RegExp,
  group: string,
  name: string,
  words: string,
): KnownQuestion {
  return {
    example,
    pattern,
    async answer(ask, bot, signal) {
      const task_id = await newestSuccess(ask, bot, signal);
      const path = at`/tasks/${task_id}/result`;
      const result = await read<Readonly<Record<string, Readonly<Record<string, unknown>>>>>(
        ask,
        path,
        signal,
      );
      const value = result[group]?.[name] as number | null | undefined;
      const shown = value === null || value === undefined ? 'undefined' : String(value);
      return {
        answer: `${words} ${shown} in the newest run that was a success, ${task_id}.`,
        citations: [{ figure: `${group}.${name}`, value: value ?? null, source: path }],
      };
    },
  };
}

async function newestSuccess(ask: Ask, bot: string, signal: AbortSignal): Promise<string> {
  const path = withQuery('/tasks', { bot, status: 'success', limit: 1 });
  const { items } = await read<{ readonly items: readonly { readonly task_id: string }[] }>(
    ask,
    path,
    signal,
  );
  if (items[0] !== undefined) return items[0].task_id;
  throw new ServiceError('not_found', 'no run of this bot has been a success yet', {
    reason: 'no_result',
    remedy: 'Backtest it first, with `service-local bots backtest`.',
  });
}
