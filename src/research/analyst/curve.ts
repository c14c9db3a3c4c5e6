import { DAY } from '../../base/durations.ts';
import {
  formatCountOf,
  formatMoney,
  formatPercent,
  formatQuantity,
  formatRatio,
} from '../../base/format.ts';
import type { Citation } from '../answering.ts';
import { cite, citeCell, day, missing, quoted, runOf, type Facts, type Run } from './facts.ts';
import { daysOf, periodIn } from './period.ts';
import { countIn, ordinalIn, type Prompt } from './prompt.ts';
import { ofRuns, reply, type KnownQuestion, type Questions, type Reply } from './question.ts';
import {
  curveOf,
  DRAWDOWN_COLUMN,
  EQUITY_COLUMN,
  rowOf,
  tradeColumn,
  tradesOf,
  type Curve,
  type TradeRow,
} from './table.ts';

/** A time below a former peak, by places of the curve. */
interface Fall {
  /** The last bar at the peak; −1 for the cash at the start. */
  readonly from: number;
  readonly deepest: number;
  /** The first bar at a new peak; undefined where there was none until the end. */
  readonly until: number | undefined;
}

function fallsOf({ drawdown }: Curve): Fall[] {
  const falls: Fall[] = [];
  for (let i = 0; i < drawdown.length; i += 1) {
    if (drawdown[i]! >= 0) continue;
    const from = i - 1;
    let deepest = i;
    while (i < drawdown.length && drawdown[i]! < 0) {
      if (drawdown[i]! < drawdown[deepest]!) deepest = i;
      i += 1;
    }
    falls.push({ from, deepest, until: i < drawdown.length ? i : undefined });
  }
  return falls.toSorted((a, b) => drawdown[a.deepest]! - drawdown[b.deepest]!);
}

function sayFall({ time, drawdown }: Curve, { from, deepest, until }: Fall): string {
  const begin = from < 0 ? 'the start' : day(time[from]!);
  const end =
    until === undefined ? 'not recovered by the end' : `recovered on ${day(time[until]!)}`;
  return `${formatPercent(drawdown[deepest]!)}: from the peak of ${begin} to ${day(time[deepest]!)}, ${end}`;
}

/** Its lowest point, and the bars where it began and ended. */
function citeFall({ path, time, drawdown }: Curve, fall: Fall, name: string): Citation[] {
  const { from, deepest, until } = fall;
  return [
    citeCell(path, rowOf(deepest), DRAWDOWN_COLUMN, name, drawdown[deepest]!),
    citeCell(path, rowOf(deepest), 1, `${name} deepest`, time[deepest]!),
    ...(from < 0 ? [] : [citeCell(path, rowOf(from), 1, `${name} peak`, time[from]!)]),
    ...(until === undefined
      ? []
      : [citeCell(path, rowOf(until), 1, `${name} recovered`, time[until]!)]),
  ];
}

function drawdowns(
  id: string,
  example: string,
  tells: string,
  keys: readonly string[],
  most: number,
): KnownQuestion {
  return {
    id,
    example,
    tells,
    keys,
    counts: most === 1 ? 'place' : 'many',
    async answer(facts) {
      const run = await runOf(facts);
      const curve = await curveOf(facts, run);
      const place = ordinalIn(facts.prompt);
      const all = fallsOf(curve);
      const falls =
        place > 1
          ? all.slice(place - 1, place)
          : all.slice(0, most === 1 ? 1 : countIn(facts.prompt, most));
      if (falls.length === 0) {
        const text = all.length === 0 ? 'Equity never fell' : 'There are not so many';
        return reply(`${text}, in ${run.said}.`, cite(run.result, '/risk/max_drawdown'));
      }
      const citations = falls.flatMap((fall, i) => citeFall(curve, fall, `drawdown ${place + i}`));
      const lines = falls.map((fall) => `- ${sayFall(curve, fall)}`);
      return reply([`At closes of bars, in ${run.said}:`, ...lines], citations);
    },
  };
}

/** What equity made between two closes. */
interface Span {
  /** `2008` or `2008-02`. */
  readonly name: string;
  /** Its last bar. */
  readonly last: number;
  readonly made: number;
}

/** @param length of the part of a time that names the span: 4 for years, 7 for months. */
function spansOf({ time, equity }: Curve, start: number, length: 4 | 7): Span[] {
  const spans: Span[] = [];
  let before = start;
  for (let i = 0; i < time.length; i += 1) {
    const name = time[i]!.slice(0, length);
    if (time[i + 1]?.startsWith(name)) continue;
    spans.push({ name, last: i, made: equity[i]! / before - 1 });
    before = equity[i]!;
  }
  return spans;
}

/** Spans of the curve, and the cells from which their returns are worked out. */
function tellSpans(run: Run, curve: Curve, all: readonly Span[], shown: readonly Span[]): Reply {
  const needed = new Set(shown.flatMap((span) => [all[all.indexOf(span) - 1], span]));
  const isFirst = shown.includes(all[0]!);
  const citations = [...needed].flatMap((span) =>
    span === undefined
      ? []
      : citeCell(
          curve.path,
          rowOf(span.last),
          EQUITY_COLUMN,
          `equity at the end of ${span.name}`,
          curve.equity[span.last]!,
        ),
  );
  const lines = shown.map(({ name, made }) => `- ${name}: ${formatPercent(made)}`);
  return reply(
    [`From the equity at the closes, in ${run.said}:`, ...lines],
    isFirst ? [cite(run.result, '/equity/start'), ...citations] : citations,
  );
}

const MOST_YEARS = 40;

const EVER = { from: '0000-01-01', to: '9999-12-31' };

async function tellYears(
  facts: Facts,
  length: 4 | 7,
  choose: (all: readonly Span[]) => readonly Span[],
): Promise<Reply> {
  const run = await runOf(facts);
  const curve = await curveOf(facts, run);
  const all = spansOf(curve, run.result.data.equity.start, length);
  const period = periodIn(facts.prompt);
  const { from, to } = period === undefined ? EVER : daysOf(period, run);
  const within = all.filter(
    ({ name }) => name >= from.slice(0, length) && name <= to.slice(0, length),
  );
  const shown = within.length === 0 ? [] : choose(within);
  if (shown.length > 0) return tellSpans(run, curve, all, shown);
  throw missing(`there are no such days in ${run.said}`);
}

/** Those of the years that are named; where none is, what there is otherwise. */
function ofYears(
  { prompt }: Facts,
  all: readonly Span[],
  otherwise: readonly Span[],
): readonly Span[] {
  const { years } = prompt;
  return years.length === 0 || periodIn(prompt) !== undefined
    ? otherwise
    : all.filter(({ name }) => years.includes(Number(name.slice(0, 4))));
}

function bestAndWorst(all: readonly Span[]): readonly Span[] {
  const sorted = all.toSorted((a, b) => b.made - a.made);
  return [...new Set([sorted[0]!, sorted.at(-1)!])];
}

interface Ranking {
  readonly counts?: KnownQuestion['counts'];
  /** Sort key of the trades, for the answer. */
  readonly order?: (prompt: Prompt) => string;
}

function tradesBy(
  id: string,
  example: string,
  tells: string,
  keys: readonly string[],
  choose: (trades: readonly TradeRow[], prompt: Prompt) => readonly TradeRow[],
  { counts, order }: Ranking = {},
): KnownQuestion {
  return {
    id,
    example,
    tells,
    keys,
    ...(counts !== undefined && { counts }),
    async answer(facts) {
      const run = await runOf(facts);
      const { path, trades } = await tradesOf(facts, run);
      const chosen = choose(trades, facts.prompt);
      if (chosen.length === 0) {
        return reply(
          `There are none, in ${run.said}.`,
          cite(run.result, '/trades/count'),
          cite(run.result, '/trades/open'),
        );
      }
      return reply(
        [
          `${order === undefined ? 'In' : `By ${order(facts.prompt)}, in`} ${run.said}:`,
          ...chosen.map((trade) => `- ${sayTrade(trade)}`),
        ],
        chosen.flatMap((trade) => citeTrade(path, trade)),
      );
    },
  };
}

function sayTrade(trade: TradeRow): string {
  const { symbol, side, entry_time, exit_time, quantity, pnl, status } = trade;
  const what = `${side} ${formatQuantity(quantity)} ${quoted(symbol)} from ${day(entry_time)}`;
  const until = status === 'open' ? 'still open at the end' : `to ${day(exit_time)}`;
  return `${what}, ${until}: ${formatMoney(pnl)} (${formatPercent(trade.return)})`;
}

function citeTrade(path: string, trade: TradeRow): Citation[] {
  return (['pnl', 'return', 'exit_time'] as const).map((name) =>
    citeCell(path, trade.row, tradeColumn(name), `trade ${trade.row - 1} ${name}`, trade[name]),
  );
}

/** Of those in order, as many as are asked for, or the one whose place is. */
function nth(trades: readonly TradeRow[], prompt: Prompt, usual = 1): readonly TradeRow[] {
  const place = ordinalIn(prompt);
  return place > 1 ? trades.slice(place - 1, place) : trades.slice(0, countIn(prompt, usual));
}

/** The best trades have the highest profit in money, unless the prompt asks for return. */
function orderIn({ words }: Prompt): 'pnl' | 'return' {
  const isByReturn = words.some((word) => /^(?:returns?|percent|percentage)$/.test(word));
  return isByReturn ? 'return' : 'pnl';
}

const BY_PROFIT = {
  counts: 'many',
  order: (prompt) => (orderIn(prompt) === 'return' ? 'return' : 'profit'),
} as const satisfies Ranking;

/** Sorted by profit or return, highest first. */
function byProfit(trades: readonly TradeRow[], prompt: Prompt): readonly TradeRow[] {
  const figure = orderIn(prompt);
  return closed(trades).toSorted((a, b) => b[figure] - a[figure]);
}

function lengthOf({ entry_time, exit_time }: TradeRow): number {
  return Date.parse(exit_time) - Date.parse(entry_time);
}

async function tradeLength(facts: Facts): Promise<Reply> {
  const run = await runOf(facts);
  const all = closed((await tradesOf(facts, run)).trades);
  if (all.length === 0) throw missing(`no trade was closed in ${run.said}`);
  const days = all.map((trade) => lengthOf(trade) / DAY).toSorted((a, b) => a - b);
  const median = mean(middleOf(days));
  const text = `${formatCountOf(all.length, 'closed trade')} lasted ${formatRatio(mean(days))} calendar days on average, the median ${formatRatio(median)}, by trades.csv of ${run.said}.`;
  return reply(text, cite(run.result, '/trades/count'));
}

/** Of values in order the one in the middle, or the two. */
function middleOf<T>(values: readonly T[]): readonly T[] {
  return values.slice(Math.ceil(values.length / 2) - 1, Math.floor(values.length / 2) + 1);
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

/** Trades that ended in one way, counted. */
function outcome(
  id: string,
  example: string,
  tells: string,
  keys: readonly string[],
  what: string,
  isMeant: (trade: TradeRow) => boolean,
): KnownQuestion {
  return {
    id,
    example,
    tells,
    keys,
    async answer(facts) {
      const run = await runOf(facts);
      const all = closed((await tradesOf(facts, run)).trades);
      const meant = all.filter(isMeant);
      const on =
        meant.length === 0
          ? ''
          : `, on average of ${formatMoney(mean(meant.map(({ pnl }) => pnl)))} (${formatPercent(mean(meant.map((trade) => trade.return)))})`;
      const text = `${meant.length} of ${formatCountOf(all.length, 'closed trade')} ended with ${what}${on}, by trades.csv of ${run.said}.`;
      return reply(text, cite(run.result, '/trades/count'), cite(run.result, '/trades/win_rate'));
    },
  };
}

/** Of an even number, the mean of the two in the middle. */
async function medianTrade(facts: Facts): Promise<Reply> {
  const run = await runOf(facts);
  const { path, trades } = await tradesOf(facts, run);
  const all = closed(trades).toSorted((a, b) => a.return - b.return);
  if (all.length === 0) throw missing(`no trade was closed in ${run.said}`);
  const middle = middleOf(all);
  const value = formatPercent(mean(middle.map((trade) => trade.return)));
  return reply(
    `Median return of ${formatCountOf(all.length, 'closed trade')}: ${value}, in ${run.said}.`,
    middle.flatMap((trade) => citeTrade(path, trade)),
  );
}

/** Newest first. */
const byEnd = (trades: readonly TradeRow[]): readonly TradeRow[] =>
  closed(trades)
    .toSorted((a, b) => (a.exit_time < b.exit_time ? -1 : 1))
    .toReversed();

const closed = (trades: readonly TradeRow[]): TradeRow[] =>
  trades.filter(({ status }) => status === 'closed');

export const CURVE: Questions = ofRuns({
  title: 'Single trades, drawdowns, years and months of that run',
  questions: [
    tradesBy(
      'best_trade',
      'What was the best trade?',
      'its profit and its days; the one with the highest profit, or return if you say so; or as many as you say',
      [
        'best|top trade|win|winner',
        'largest|biggest|highest win|winner|profit|gain trade',
        'largest|biggest win|winner',
        'best|top trade profit|money|pnl|return|percent|percentage',
        'most profitable trade',
        'best trade when',
        'which trade won|gained|made|earned most',
        'which trade won|gained|made|earned most money|profit',
        '#ordinal best|largest|biggest trade|win|winner',
      ],
      (trades, prompt) => nth(byProfit(trades, prompt), prompt),
      BY_PROFIT,
    ),
    tradesBy(
      'worst_trade',
      'What was the worst trade?',
      'its loss and its days; the one with the lowest profit, or return if you say so; or as many as you say',
      [
        'worst trade',
        'worst trade profit|money|pnl|return|percent|percentage|loss',
        'worst|largest|biggest|top loss|loser|losing',
        'largest|biggest|top|worst losing|loss|loser trade',
        'which trade lost|lose most',
        'which trade lost|lose most money',
        '#ordinal worst trade|loss',
        '#ordinal largest|biggest loss|loser',
      ],
      (trades, prompt) => nth(byProfit(trades, prompt).toReversed(), prompt),
      BY_PROFIT,
    ),
    tradesBy(
      'longest_trade',
      'Which trade lasted longest?',
      'its days and its profit',
      ['longest trade', 'trade last|lasted|held|open longest', 'longest holding'],
      (trades, prompt) =>
        nth(
          closed(trades).toSorted((a, b) => lengthOf(b) - lengthOf(a)),
          prompt,
        ),
      { counts: 'many' },
    ),
    {
      id: 'trade_length',
      example: 'How long did a trade last on average?',
      tells: 'the mean and the median of the days of closed trades',
      keys: [
        'long trade last|lasted|held|open',
        'how long average|mean|median trade last|lasted|held|open',
        'average|mean|median holding|duration|length',
        'average|mean|median holding|trade period|time|duration|length',
        'holding period|time',
      ],
      answer: tradeLength,
    },
    outcome(
      'winning_trades',
      'How many trades closed with a profit?',
      'their number, and what they made on average',
      [
        'many|number|count trade profit|profitable|win|winning|won|gain|gained|positive',
        'many trade made|make profit|gain|money',
        'winning|profitable trade',
        'average|mean win|winner',
        'average|mean profit|gain|win winning|profitable trade',
        'many win|winner',
      ],
      'a profit',
      ({ pnl }) => pnl > 0,
    ),
    outcome(
      'losing_trades',
      'How many trades closed with a loss?',
      'their number, and what they lost on average',
      [
        'many|number|count trade loss|losing|lose|lost|negative',
        'many trade made|make loss',
        'many trade lost|lose money',
        'share|percent trade lost|lose|losing|loss',
        'losing trade',
        'average|mean loss',
        'average|mean loss losing|lost trade',
        'many loss|losses|loser',
      ],
      'a loss',
      ({ pnl }) => pnl < 0,
    ),
    {
      id: 'median_trade',
      example: 'What did the median trade return?',
      tells: 'the return in the middle of those of all closed trades',
      keys: ['median trade', 'median trade return|profit|gain|made'],
      answer: medianTrade,
    },
    tradesBy(
      'last_trades',
      'What were the last trades?',
      'the five that were closed last, or as many as you say',
      ['last|latest|recent|newest trade', 'list|show trade'],
      (trades, prompt) => nth(byEnd(trades), prompt, 5).toReversed(),
      { counts: 'many' },
    ),
    tradesBy(
      'open_trades',
      'Which trades were open at the end?',
      'positions at the end of the run',
      ['open trade', 'trade open end', 'open position end'],
      (trades) => trades.filter(({ status }) => status === 'open').slice(0, 10),
    ),
    drawdowns(
      'drawdown_when',
      'When was the deepest drawdown, and has it recovered?',
      'peak, lowest point and recovery',
      [
        'when|deepest drawdown',
        'when deepest|worst|largest|max|maximum drawdown',
        'drawdown recover|recovery|recovered',
        'recover|recovery|recovered',
      ],
      1,
    ),
    drawdowns(
      'drawdowns',
      'Which drawdowns were there?',
      'the five deepest, each with its days',
      [
        'which|list|show|all|five|top drawdown',
        '#ordinal drawdown',
        '#ordinal deepest|worst|largest|biggest drawdown',
        'drawdown period',
        'deepest|worst drawdown period',
      ],
      5,
    ),
    {
      id: 'years',
      ofRun: 'years',
      example: 'What did it return in each year?',
      tells: 'returns of the years, or of the year that you name',
      keys: [
        'annual|yearly return',
        'return each|every|by year',
        'return|perform|performance|profit|made|make|earn|gain|lose|lost #year',
        'how #year',
        'calendar year',
        '#year',
      ],
      answer: (facts) => tellYears(facts, 4, (all) => ofYears(facts, all, all.slice(-MOST_YEARS))),
    },
    {
      id: 'best_year',
      ofRun: 'years',
      example: 'What were the best and the worst year?',
      tells: 'the two, with their returns',
      keys: ['best|worst year', 'best worst year'],
      answer: (facts) => tellYears(facts, 4, bestAndWorst),
    },
    {
      id: 'months',
      ofRun: 'years',
      example: 'What did it return in each month?',
      tells: 'returns of the last twelve months, or of those of the year that you name',
      keys: [
        'month|monthly return',
        'return each|every|by month',
        'month #year',
        'return month #year',
        'monthly|month return #year',
      ],
      answer: (facts) =>
        tellYears(facts, 7, (all) => ofYears(facts, all, all.slice(-12)).slice(0, 24)),
    },
    {
      id: 'best_month',
      ofRun: 'years',
      example: 'What were the best and the worst month?',
      tells: 'the two, with their returns',
      keys: ['best|worst month', 'best worst month'],
      answer: (facts) => tellYears(facts, 7, bestAndWorst),
    },
  ],
});
