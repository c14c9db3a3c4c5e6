/** Builds the query that the tags of a question ask for. Each tag must be used. */
import { Bag } from './bag.ts';
import type { Period } from './dates.ts';
import type { Query, RunWanted, Selection, Show, SpanUnit, Stat } from './query.ts';
import {
  isPluralOutcome,
  isSpan,
  negated,
  readClock,
  readSpans,
  readTrades,
  taken,
  TRADE_FIGURES,
} from './read-items.ts';
import type { Slot, Tag } from './tags.ts';

export type Interpretation =
  | { readonly query: Query }
  /** Phrases that fit no query together with the rest. */
  | { readonly query?: undefined; readonly left: readonly string[] };

type Builder = (bag: Bag) => Query | undefined;

/** @param ids of runs in the question. */
export function interpret(tags: readonly Tag[], ids: readonly string[]): Interpretation {
  const meant = tags.filter(({ slot }) => slot !== 'conjunction');
  let left = meant;
  for (const build of BUILDERS) {
    const bag = new Bag(meant);
    const version = bag.take('version');
    const kind = bag.take('kind') as RunWanted['kind'];
    if (ids.length === 1) bag.take('run', 'id');
    const query = build(bag);
    if (query !== undefined && bag.left().length === 0) {
      return { query: { ...query, run: { id: ids[0], version, kind } } };
    }
    if (bag.left().length < left.length) left = bag.left();
  }
  return { left: left.map(({ text }) => text) };
}

const SUMMED = new Set(['total_return', 'profit', 'fees', 'slippage', 'costs', 'doing']);

function figure(bag: Bag): Query | undefined {
  const period = bag.take('period');
  let measure = bag.take('measure') ?? (bag.has('measure') ? undefined : plainProfit(bag, period));
  if (bag.has('measure') && measure === undefined) return undefined;
  if (bag.peek('per') === 'annum') measure ??= 'total_return';
  const benchmark = bag.take('benchmark');
  const isCompared = bag.take('compare') !== undefined;
  if (benchmark !== undefined || (isCompared && period !== undefined)) measure ??= 'total_return';
  if (period !== undefined && !hasCore(bag)) measure ??= 'total_return';
  if (measure === undefined || !isOfRun(measure, period)) return undefined;
  // A return `from 2010` may be that of the year, or that since then.
  if (
    bag.text('period').startsWith('from ') &&
    !/ (?:to|until|till|through|thru|-|on|onwards?)\b/.test(bag.text('period'))
  ) {
    return undefined;
  }
  if (measure === 'doing' && (period !== undefined || benchmark !== undefined)) {
    measure = 'total_return';
  }
  bag.take('want', 'amount', 'degree', 'list');
  if (measure === 'max_drawdown_days') bag.take('want', 'length');
  if (/orders$|bars|margin_calls/.test(measure) && bag.take('want', 'count') !== undefined) {
    if (measure === 'orders') measure = 'submitted_orders';
  }
  if (measure === 'exposure') bag.take('want', 'share');
  const by = SPLIT.has(measure) ? spanOf(bag) : undefined;
  if (SUMMED.has(measure)) bag.take('stat', 'sum');
  if (measure === 'end_equity' && period !== undefined) measure = 'equity';
  if (measure === 'equity') bag.take('edge', 'exit');
  measure = yearly(bag, inUnit(bag, measure));
  if (benchmark !== undefined) bag.take('whatIf');
  if (isCompared && benchmark === undefined && period === undefined) return undefined;
  const of = benchmark === undefined ? 'run' : isCompared ? 'both' : 'benchmark';
  return {
    kind: 'figure',
    measure,
    period,
    by,
    of,
    benchmark,
    than: bag.take('condition'),
    run: {},
  };
}

/** Measures that are also answered for each year, quarter or month. */
const SPLIT = new Set(['fees', 'slippage', 'costs', 'exposure']);

/** `by year`, `each year`, `yearly` */
function spanOf(bag: Bag): SpanUnit | undefined {
  const slot = (['every', 'per', 'subject'] as const).find((one) => isSpan(bag.peek(one)));
  if (slot === undefined) return undefined;
  if (slot === 'per') bag.take('stat', 'mean');
  return bag.take(slot) as SpanUnit;
}

const OF_TRADES = new Set([
  'loss_rate',
  'payoff',
  'gross_profit',
  'gross_loss',
  'duration',
  'quantity',
  'entry_price',
  'exit_price',
]);

/** Whether a measure is a figure of a run, and not of its trades. */
function isOfRun(measure: string, period: Period | undefined): boolean {
  if (OF_TRADES.has(measure)) return false;
  return period === undefined || !TRADE_FIGURES.includes(measure);
}

/** Whether a question is about items, such as trades. */
function hasCore(bag: Bag): boolean {
  return (
    ['subject', 'outcome', 'stat', 'rank', 'side', 'symbol', 'streak', 'status'] as const
  ).some((slot) => bag.has(slot));
}

/**
 * `How much did it lose in 2008?` and `Was it profitable?` ask for the profit of the run. Plurals, such as
 * `losers`, ask for trades.
 */
function plainProfit(bag: Bag, period: Period | undefined): string | undefined {
  const word = bag.text('outcome');
  const want = bag.peek('want');
  const isOfItems = (
    ['subject', 'rank', 'stat', 'condition', 'streak', 'side', 'status'] as const
  ).some((slot) => bag.has(slot));
  if (word === '' || isOfItems || isPluralOutcome(word)) return undefined;
  // `How much did it lose?` may ask for the sum of the losses.
  if (period === undefined && !/profitable|positive|negative|money|gain/.test(word))
    return undefined;
  const isPlain = want === undefined || want === 'amount' || want === 'degree';
  return isPlain && bag.take('outcome') !== undefined ? 'profit' : undefined;
}

function inUnit(bag: Bag, measure: string): string {
  const unit = bag.peek('unit');
  if (unit === undefined) return measure;
  const units: Readonly<Record<string, readonly [string, string]>> = {
    total_return: ['total_return', 'profit'],
    profit: ['total_return', 'profit'],
  };
  const changed = units[measure]?.[unit === 'percent' ? 0 : 1];
  if (changed !== undefined && (unit === 'percent' || unit === 'money')) {
    bag.take('unit');
    return changed;
  }
  if (/fees|slippage|costs|equity|expectancy/.test(measure)) bag.take('unit', 'money');
  if (/cagr|max_drawdown$|volatility|exposure|rate|var_95|annual/.test(measure)) {
    bag.take('unit', 'percent');
  }
  if (measure === 'max_drawdown_days') bag.take('unit', 'days');
  return measure;
}

/** A return per year is the CAGR, or the mean of the years. */
function yearly(bag: Bag, measure: string): string {
  if (measure !== 'total_return' && measure !== 'profit' && measure !== 'doing') return measure;
  const isMean = bag.peek('stat') === 'mean';
  const isYearly =
    bag.take('per', 'annum') ??
    (isMean ? (bag.take('per', 'year') ?? bag.take('every', 'year')) : undefined);
  if (isYearly === undefined) return measure;
  bag.take('stat', 'mean');
  return isMean ? 'annual_mean' : 'cagr';
}

const DRAWDOWN_CONDITIONS: Readonly<Record<string, 'return' | 'duration' | 'months'>> = {
  percent: 'return',
  days: 'duration',
  months: 'months',
};

function drawdowns(bag: Bag): Query | undefined {
  const want = bag.peek('want');
  const hasRecovered = bag.take('recovered') !== undefined;
  const isMany = bag.take('subject', 'drawdown') !== undefined;
  if (hasRecovered && want === 'length') return undefined;
  const isSingle =
    ['nth', 'number', 'stat'].some((slot) => bag.has(slot as Slot)) ||
    hasRecovered ||
    want === 'when' ||
    (want === 'length' && bag.peek('measure') !== 'max_drawdown_days');
  if (!isMany && !isSingle) return undefined;
  const measure = bag.take('measure', 'max_drawdown') ?? bag.take('measure', 'max_drawdown_days');
  if (!isMany && measure === undefined) return undefined;
  bag.take('measure', 'duration');
  const rank = bag.take('rank', 'worst', 'large', 'top', 'long');
  const isLong = rank === 'long' || measure === 'max_drawdown_days';
  const found = bag.takeAll('condition').map((is) => {
    const by = DRAWDOWN_CONDITIONS[is.unit ?? ''];
    return by && ({ by, is: by === 'return' ? negated(is) : is } as const);
  });
  if (found.includes(undefined)) return undefined;
  const selection: Selection = {
    of: 'drawdown',
    status: 'closed',
    conditions: found as Selection['conditions'],
    sort: { by: isLong ? 'duration' : 'return', descending: isLong },
    take: undefined,
  };
  bag.take('want', 'list', 'when', 'degree');
  if (bag.take('want', 'count') !== undefined)
    return { kind: 'items', selection, show: { as: 'count' }, run: {} };
  const stat = bag.take('stat', 'mean', 'median') as Stat | undefined;
  const isLength = bag.take('want', 'length') ?? bag.take('unit', 'days');
  if (stat !== undefined) {
    return {
      kind: 'items',
      selection,
      show: { as: 'stat', stat, by: isLength ? 'duration' : 'return' },
      run: {},
    };
  }
  const isListed = isMany && found.length > 0 && !bag.has('number');
  const show: Show = isLength && !isMany ? { as: 'value', by: 'duration' } : { as: 'list' };
  return {
    kind: 'items',
    selection: { ...selection, take: isListed ? undefined : taken(bag, isMany) },
    show,
    run: {},
  };
}

function streaks(bag: Bag): Query | undefined {
  if (bag.take('streak') === undefined) return undefined;
  const of = bag.take('subject') ?? 'trade';
  const outcome = bag.take('outcome', 'win', 'lose');
  if (outcome === undefined || !(of === 'trade' || isSpan(of))) return undefined;
  const rank =
    bag.take('rank', 'large', 'long') ?? bag.take('rank', outcome === 'win' ? 'best' : 'worst');
  const isTrade = of === 'trade';
  const selection: Selection = {
    of: 'streak',
    in: of,
    outcome,
    status: 'closed',
    side: isTrade ? bag.take('side') : undefined,
    symbol: isTrade ? bag.take('symbol') : undefined,
    period: bag.take('period'),
    conditions: bag
      .takeAll('condition')
      .flatMap((is) =>
        is.unit === undefined || is.unit === 'count' ? [{ by: 'count', is } as const] : [],
      ),
    sort: { by: 'count', descending: true },
    take: rank === undefined ? undefined : taken(bag, false),
  };
  const isLimited = selection.conditions.length > 0;
  const want = bag.take('want');
  bag.take('edge');
  const isMoney =
    bag.take('measure', 'profit', 'costs') !== undefined || bag.peek('unit') === 'money';
  bag.take('unit', 'money');
  if (rank === undefined) {
    return isLimited && !isMoney
      ? { kind: 'items', selection, show: { as: want === 'count' ? 'count' : 'list' }, run: {} }
      : undefined;
  }
  if (isLimited) return undefined;
  const show: Show =
    isMoney || want === 'amount'
      ? { as: 'value', by: 'profit' }
      : want === 'when'
        ? { as: 'list' }
        : { as: 'value', by: 'count' };
  return { kind: 'items', selection, show, run: {} };
}

function whatIf(bag: Bag): Query | undefined {
  const changes = bag.takeAll('change');
  if (changes.length === 0) return undefined;
  // `If we started with 50,000 in 2010` may mean a backtest that begins then.
  if (bag.has('period') && changes.some((change) => change.of === 'cash')) return undefined;
  bag.takeAll('whatIf');
  bag.take('want', 'degree', 'amount');
  const measure = bag.take('measure');
  if (measure === undefined) bag.take('subject', 'trade');
  const unit = bag.take('unit', 'percent', 'money');
  const inUnits = unit === 'percent' ? 'total_return' : unit === 'money' ? 'profit' : undefined;
  bag.take('want', 'count');
  return {
    kind: 'what if',
    changes,
    period: bag.take('period'),
    measure: inUnits ?? (measure === 'doing' ? undefined : measure),
    run: {},
  };
}

function comparison(bag: Bag): Query | undefined {
  const isAsked = bag.take('compare') !== undefined;
  const versions = [...new Set(bag.takeAll('version'))];
  const isTwo = bag.take('run', 'two') !== undefined;
  bag.take('measure', 'doing', 'summary');
  bag.take('want', 'list');
  if (isTwo ? versions.length > 0 : !isAsked || versions.length !== 2) return undefined;
  return { kind: 'compare', versions, run: {} };
}

const BUILDERS: readonly Builder[] = [
  whatIf,
  comparison,
  streaks,
  drawdowns,
  figure,
  readSpans,
  readTrades,
  readClock,
];
