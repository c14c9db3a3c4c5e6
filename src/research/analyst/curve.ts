import { formatMoney, formatPercent, formatQuantity } from '../../format.ts';
import type { Citation } from '../answering.ts';
import { cite, citeCell, day, missing, quoted, runOf, type Facts, type Run } from './facts.ts';
import { told, type KnownQuestion, type Questions, type Told } from './question.ts';
import {
  curveOf,
  DRAWDOWN_COLUMN,
  EQUITY_COLUMN,
  rowOf,
  TRADE_COLUMNS,
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
    async answer(facts) {
      const run = await runOf(facts);
      const curve = await curveOf(facts, run);
      const falls = fallsOf(curve).slice(0, most);
      if (falls.length === 0) {
        return told(`Equity never fell, in ${run.said}.`, cite(run.result, '/risk/max_drawdown'));
      }
      const citations = falls.flatMap((fall, i) => citeFall(curve, fall, `drawdown ${i + 1}`));
      const lines = falls.map((fall) => `- ${sayFall(curve, fall)}`);
      return told([`At closes of bars, in ${run.said}:`, ...lines], citations);
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
function tellSpans(run: Run, curve: Curve, all: readonly Span[], shown: readonly Span[]): Told {
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
  return told(
    [`From the equity at the closes, in ${run.said}:`, ...lines],
    isFirst ? [cite(run.result, '/equity/start'), ...citations] : citations,
  );
}

const MOST_YEARS = 40;

async function tellYears(
  facts: Facts,
  length: 4 | 7,
  choose: (all: readonly Span[]) => readonly Span[],
): Promise<Told> {
  const run = await runOf(facts);
  const curve = await curveOf(facts, run);
  const all = spansOf(curve, run.result.data.equity.start, length);
  const shown = choose(all);
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
  return years.length === 0
    ? otherwise
    : all.filter(({ name }) => years.includes(Number(name.slice(0, 4))));
}

function bestAndWorst(all: readonly Span[]): readonly Span[] {
  const sorted = all.toSorted((a, b) => b.made - a.made);
  return [...new Set([sorted[0]!, sorted.at(-1)!])];
}

function tradesBy(
  id: string,
  example: string,
  tells: string,
  keys: readonly string[],
  choose: (trades: readonly TradeRow[]) => readonly TradeRow[],
): KnownQuestion {
  return {
    id,
    example,
    tells,
    keys,
    async answer(facts) {
      const run = await runOf(facts);
      const { path, trades } = await tradesOf(facts, run);
      const chosen = choose(trades);
      if (chosen.length === 0) {
        return told(
          `There are none, in ${run.said}.`,
          cite(run.result, '/trades/count'),
          cite(run.result, '/trades/open'),
        );
      }
      return told(
        [`In ${run.said}:`, ...chosen.map((trade) => `- ${sayTrade(trade)}`)],
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
    citeCell(path, trade.row, TRADE_COLUMNS[name], `trade ${trade.row - 1} ${name}`, trade[name]),
  );
}

const closed = (trades: readonly TradeRow[]): TradeRow[] =>
  trades.filter(({ status }) => status === 'closed');

export const CURVE: Questions = {
  title: 'Single trades, drawdowns, years and months of that run',
  questions: [
    tradesBy(
      'best_trade',
      'What was the best trade?',
      'its profit and its days',
      ['best|largest|biggest|top trade|win|winner', 'best trade when'],
      (trades) =>
        closed(trades)
          .toSorted((a, b) => b.return - a.return)
          .slice(0, 1),
    ),
    tradesBy(
      'worst_trade',
      'What was the worst trade?',
      'its loss and its days',
      [
        'worst trade',
        'worst|largest|biggest loss|loser|losing',
        'largest|biggest losing|loss trade',
      ],
      (trades) =>
        closed(trades)
          .toSorted((a, b) => a.return - b.return)
          .slice(0, 1),
    ),
    tradesBy(
      'last_trades',
      'What were the last trades?',
      'the five that were closed last',
      ['last|latest|recent|newest trade', 'list|show trade'],
      (trades) =>
        closed(trades)
          .toSorted((a, b) => (a.exit_time < b.exit_time ? -1 : 1))
          .slice(-5),
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
      ['which|list|show|all|five|top drawdown', 'drawdown period', 'deepest|worst drawdown period'],
      5,
    ),
    {
      id: 'years',
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
      example: 'What were the best and the worst year?',
      tells: 'the two, with their returns',
      keys: ['best|worst year', 'best worst year'],
      answer: (facts) => tellYears(facts, 4, bestAndWorst),
    },
    {
      id: 'months',
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
      example: 'What were the best and the worst month?',
      tells: 'the two, with their returns',
      keys: ['best|worst month', 'best worst month'],
      answer: (facts) => tellYears(facts, 7, bestAndWorst),
    },
  ],
};
