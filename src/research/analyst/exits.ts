/** How trades end: words for it, and the exit reasons that they stand for. */
import { EXIT_REASONS, type ExitReason } from '../../backtest/report/exit-reasons.ts';
import { formatCount } from '../../base/format.ts';
import { missing } from './facts.ts';
import type { RunRecord } from './run-records.ts';
import type { TradeRow } from './result-files.ts';
import type { Slot } from './tags.ts';

/** Ways to end, as `ended …` names them. A stop loss may be a bracket, or an order of its own. */
export const EXITS: Readonly<
  Record<string, { readonly name: string; readonly of: readonly ExitReason[] }>
> = {
  stop: { name: 'by a stop', of: ['stop_loss', 'stop', 'stop_limit', 'trailing_stop'] },
  'stop loss': { name: 'by a stop loss', of: ['stop_loss', 'stop', 'stop_limit'] },
  'trailing stop': { name: 'by a trailing stop', of: ['trailing_stop'] },
  'take profit': { name: 'by a take profit', of: ['take_profit'] },
  limit: { name: 'by a limit order', of: ['limit'] },
  market: { name: 'by a market order', of: ['market'] },
  reversal: { name: 'by a reversal', of: ['reversal'] },
};

/** Required, because `trades with a stop` may have ended in another way. */
const VERB =
  '(?:that |which )?(?:were |was |got )?(?:ended|end|exited|exit|exits|closed|hit|finished|reached|triggered|taken out)(?: (?:by|with|at|on|through|via))? (?:an? |the |their |its )?';

export const EXIT_PHRASES: readonly (readonly [slot: Slot, value: string, phrases: string])[] = [
  [
    'reason',
    'stop',
    `${VERB}(?:stops?|stop orders?)|(?:were |was |got )?stopped(?: out)?|stop ?outs?`,
  ],
  ['reason', 'stop loss', `${VERB}stop ?loss(?:es)?`],
  ['reason', 'trailing stop', `${VERB}trailing stops?(?: loss(?:es)?)?`],
  ['reason', 'take profit', `${VERB}(?:take ?profits?|(?:profit )?targets?)`],
  ['reason', 'limit', `${VERB}limit orders?`],
  ['reason', 'market', `${VERB}market orders?`],
  ['reason', 'reversal', `${VERB}reversals?`],
  [
    'every',
    'reason',
    'how (?:were|did|are|do) (?:the |its |our )?(?:closed )?(?:trades?|positions?) (?:closed|exited|exit|ended|end)|(?:the )?exit reasons|reasons for (?:the )?exits?',
  ],
];

/**
 * Finds how each closed trade ended, by its number.
 * @throws ServiceError `not_found` if the events of the run do not state it.
 */
export async function exitsOf(
  run: RunRecord,
): Promise<(trade: TradeRow) => ExitReason | undefined> {
  const [trades, events] = await Promise.all([run.trades(), run.events()]);
  const reasons = events.reasonsOf(trades, run.window.to);
  if (reasons.size === 0 && trades.some(({ status }) => status === 'closed')) {
    throw missing(`the events do not state how the trades ended, in ${run.said}`);
  }
  return ({ number }) => reasons.get(number);
}

/** `All closed trades by exit: Take profit 40, Stop loss 32.` */
export async function stateExits(run: RunRecord): Promise<string> {
  const reasonOf = await exitsOf(run);
  const closed = (await run.trades()).filter(({ status }) => status === 'closed');
  const counts = [...Map.groupBy(closed, (trade) => reasonOf(trade) ?? 'market')]
    .toSorted(([, a], [, b]) => b.length - a.length)
    .map(([reason, all]) => `${EXIT_REASONS[reason]} ${formatCount(all.length)}`);
  return `All closed trades by exit: ${counts.join(', ')}.`;
}
