/** Reads questions about trades, and about days, months and years, from their tags. */
import type { Bag } from './bag.ts';
import type { Attribute, GroupUnit, Query, Selection, Show, SpanUnit, Stat } from './query.ts';
import type { Condition } from './tags.ts';

const SPAN_UNITS: ReadonlySet<string | undefined> = new Set([
  'day',
  'week',
  'month',
  'quarter',
  'year',
]);
export const isSpan = (unit: string | undefined): unit is SpanUnit => SPAN_UNITS.has(unit);

/** Attributes that a measure stands for if a question is about items. */
const ATTRIBUTES: Readonly<Record<string, Attribute>> = {
  profit: 'profit',
  total_return: 'return',
  fees: 'fees',
  duration: 'duration',
  quantity: 'quantity',
  entry_price: 'entry_price',
  exit_price: 'exit_price',
};
const UNIT_ATTRIBUTES: Readonly<Record<string, Attribute>> = {
  percent: 'return',
  money: 'profit',
  days: 'duration',
  months: 'months',
  bars: 'bars',
};

/** Figures of a set of trades. */
export const TRADE_FIGURES = [
  'win_rate',
  'loss_rate',
  'profit_factor',
  'expectancy',
  'payoff',
  'gross_profit',
  'gross_loss',
];

/** `take` of a ranked question: the place, the number, or by default 5 for a plural. */
export function taken(bag: Bag, isPlural: boolean): Selection['take'] {
  const nth = bag.take('nth');
  if (nth !== undefined) return { from: nth - 1, count: 1 };
  return { from: 0, count: bag.take('number') ?? (isPlural ? 5 : 1) };
}

const CONDITION_ATTRIBUTES: Readonly<Record<NonNullable<Condition['unit']>, Attribute>> = {
  percent: 'return',
  money: 'profit',
  days: 'duration',
  months: 'months',
  bars: 'bars',
  count: 'count',
};

/**
 * Takes the conditions. Amounts of losses are negative: a loss of more than 5 % is a return below
 * −5 %. @returns undefined if the meaning of one is unclear.
 */
function conditions(bag: Bag, outcome: string | undefined): Selection['conditions'] | undefined {
  const found = bag.takeAll('condition').map((is) => {
    const own = is.unit === undefined ? undefined : CONDITION_ATTRIBUTES[is.unit];
    const asked = is.measure === undefined ? undefined : ATTRIBUTES[is.measure];
    const isSigned =
      outcome === 'lose' || outcome === 'win' || (asked === 'profit' && is.op.startsWith('>'));
    const by =
      own === 'profit' && asked === 'fees'
        ? 'fees'
        : (own ?? asked ?? (isSigned ? 'profit' : undefined));
    if (by === undefined || by === 'count' || Number.isNaN(is.value)) return undefined;
    const isResult = by === 'profit' || by === 'return';
    if (isResult && !isSigned && !(by === 'return' && asked === by) && is.value >= 0)
      return undefined;
    const isLength = by === 'duration' || by === 'months' || by === 'bars';
    if (isLength !== (asked === 'duration' || asked === undefined) && asked !== undefined) {
      if (isLength || asked === 'duration') return undefined;
    }
    if (/longer|shorter/.test(is.said) && !isLength) return undefined;
    return { by, is: outcome === 'lose' && isResult ? negated(is) : is };
  });
  return found.includes(undefined) ? undefined : (found as Selection['conditions']);
}

export function negated({ op, value, upTo, ...rest }: Condition): Condition {
  if (value < 0) return { op, value, upTo, ...rest };
  if (op === 'between') return { ...rest, op, value: -upTo!, upTo: -value };
  const turned = { '>': '<', '>=': '<=', '<': '>', '<=': '>=', '=': '=' } as const;
  return { ...rest, op: turned[op], value: -value };
}

/** Sorts as `best`, `biggest` or `longest` says. Takes the measure if it is what to sort by. */
function sorted(bag: Bag, of: Selection['of'], outcome: string | undefined): Selection['sort'] {
  const rank = bag.take('rank');
  const key = bag.take('by');
  const measure = bag.peek('measure');
  const isStat = bag.has('stat');
  const usual: Attribute = of === 'trade' ? 'profit' : of === 'streak' ? 'count' : 'return';
  const asked = key ?? (isStat ? undefined : measure);
  const unit = isStat ? undefined : bag.peek('unit');
  const by =
    (asked === undefined ? undefined : ATTRIBUTES[asked]) ??
    (unit === undefined ? undefined : UNIT_ATTRIBUTES[unit]);
  const use = (attribute: Attribute): Attribute => {
    if (attribute === by && key === undefined && !isStat) bag.take('measure');
    if (unit !== undefined && UNIT_ATTRIBUTES[unit] === attribute) bag.take('unit');
    return attribute;
  };
  const isResult = by === 'profit' || by === 'return';
  const isResultOf = outcome === 'lose' || outcome === 'win';
  if (rank === 'best' || rank === 'top' || rank === 'worst') {
    // `top losses` are the largest; a `best loss` or a `worst win` may be the smallest or the largest.
    if (outcome === (rank === 'worst' ? 'win' : 'lose') && rank !== 'top') return undefined;
    const descending = rank === 'best' || (rank === 'top' && outcome !== 'lose');
    return { by: use(isResult || key !== undefined ? by! : usual), descending };
  }
  if (rank === 'large' || rank === 'small') {
    const isLarge = rank === 'large';
    if (isResultOf)
      return { by: use(isResult ? by : usual), descending: isLarge === (outcome === 'win') };
    return by === undefined ? undefined : { by: use(by), descending: isLarge };
  }
  if (rank === 'long' || rank === 'short') {
    bag.take('measure', 'duration');
    return { by: 'duration', descending: rank === 'long' };
  }
  if (rank === 'first') return { by: 'entry', descending: false };
  if (rank === 'last') return { by: 'exit', descending: true };
  return key === undefined || by === undefined ? undefined : { by, descending: true };
}

const TRADE_MEASURES: ReadonlySet<string | undefined> = new Set([
  'duration',
  'quantity',
  'entry_price',
  'exit_price',
  ...TRADE_FIGURES,
]);

function isAboutTrades(bag: Bag): boolean {
  const isNamed = bag.take('subject', 'trade', 'position') !== undefined;
  if (!isNamed && bag.has('subject')) return false;
  const measure = bag.peek('measure');
  const word = bag.text('outcome');
  const isVerb = word !== '' && !isPluralOutcome(word);
  if (!isNamed && isVerb && measure === 'fees') return false;
  if (!isNamed && isAboutSpans(bag)) return false;
  return (
    isNamed ||
    (['outcome', 'side', 'symbol', 'status', 'edge', 'reason'] as const).some((slot) =>
      bag.has(slot),
    ) ||
    bag.peek('per') === 'trade' ||
    bag.peek('every') === 'reason' ||
    TRADE_MEASURES.has(measure)
  );
}

/** Whether a question is like `How often was a month profitable?` */
function isAboutSpans(bag: Bag): boolean {
  const word = bag.text('outcome');
  const isSubject = /^an? /.test(bag.text('per')) && bag.at('per') < bag.at('outcome');
  return isSubject && isSpan(bag.peek('per')) && !isPluralOutcome(word);
}

/** Whether a word such as `losers` names trades. */
export const isPluralOutcome = (word: string): boolean =>
  /^(?:winners?|losers?|wins|losses)$/.test(word);

export function readTrades(bag: Bag): Query | undefined {
  const isPlural = /[^s]s$|losses$/.test(
    bag.text('subject') || bag.text('outcome') || bag.text('side'),
  );
  if (!isAboutTrades(bag)) return undefined;
  const outcome = bag.take('outcome');
  const found = conditions(bag, outcome);
  if (found === undefined) return undefined;
  const isClosed = bag.peek('status') === 'closed';
  const status = bag.take('status') === 'open' ? 'open' : 'closed';
  const filters = {
    of: 'trade',
    outcome,
    status,
    side: bag.take('side'),
    symbol: bag.take('symbol'),
    reason: bag.take('reason'),
    period: bag.take('period'),
    weekday: bag.take('weekday'),
    month: bag.take('month'),
    hour: bag.take('hour'),
    conditions: found,
  } as const;
  bag.take('want', 'degree');
  if (bag.peek('want') === 'count' && bag.text('measure') === 'make') bag.take('measure');
  const isWith = bag.text('whatIf') === 'with' && (bag.has('rank') || found.length > 0);
  if (isWith) bag.take('whatIf');
  const isClocked = bag.peek('every') === 'weekday' || bag.peek('every') === 'hour';
  const isTimed =
    isClocked ||
    [filters.period, filters.weekday, filters.month, filters.hour].some((one) => one !== undefined);
  const edge = isTimed
    ? ((bag.take('edge') ?? (isClosed ? 'exit' : undefined)) as Selection['edge'])
    : undefined;
  // Closed trades have ended.
  if (!bag.has('want') || bag.peek('want') !== 'when') bag.take('edge', 'exit');
  const hasRank = bag.has('rank');
  const nth = !hasRank && bag.has('nth') && outcome === undefined;
  const sort = nth ? ({ by: 'entry', descending: false } as const) : sorted(bag, 'trade', outcome);
  const take = sort === undefined ? undefined : taken(bag, isPlural);
  if ((hasRank && sort === undefined) || (status === 'open' && isTimed)) return undefined;
  const selection: Selection = { ...filters, edge, sort, take };
  const group = groupOf(bag);
  const show = tradeShow(bag, selection, group?.unit);
  if (show === undefined || (group !== undefined && (sort !== undefined || show.as === 'list')))
    return undefined;
  return {
    kind: 'items',
    selection,
    show,
    group: group?.unit,
    isMeanOfGroups: group?.isMean ?? false,
    run: {},
  };
}

function groupOf(bag: Bag): { readonly unit: GroupUnit; readonly isMean: boolean } | undefined {
  const every = bag.peek('every') === 'trade' ? undefined : bag.take('every');
  const per = bag.peek('per') === 'trade' ? undefined : bag.take('per');
  const unit = every ?? per;
  if (unit === undefined || unit === 'annum') return undefined;
  const isTime = isSpan(unit);
  return { unit: unit as GroupUnit, isMean: per !== undefined && isTime };
}

/** Decides what an answer about trades shows. */
function tradeShow(
  bag: Bag,
  { sort, take, outcome, conditions: found, side, reason }: Selection,
  group: string | undefined,
): Show | undefined {
  const want = bag.take('want');
  const isPer = bag.take('per', 'trade') ?? bag.take('every', 'trade');
  const stat = bag.take('stat') ?? (isPer === undefined ? undefined : 'mean');
  const measure = bag.take('measure');
  const unit = bag.take('unit');
  const asked = measure === undefined ? undefined : ATTRIBUTES[measure];
  const inUnits = unit === undefined ? undefined : UNIT_ATTRIBUTES[unit];
  const isOne = sort !== undefined && take!.count === 1;
  if (asked !== undefined && inUnits !== undefined && asked !== inUnits) {
    if (
      !(asked === 'duration' && (inUnits === 'bars' || inUnits === 'months')) &&
      !(asked === 'profit' && inUnits === 'return')
    )
      return undefined;
  }
  const by = inUnits ?? asked ?? (want === 'length' ? 'duration' : undefined);
  if (measure !== undefined && asked === undefined) {
    const isFigure = TRADE_FIGURES.includes(measure) && stat === undefined && !isOne;
    return isFigure && (want === undefined || want === 'list')
      ? { as: 'figure', name: measure }
      : undefined;
  }
  if (
    want === 'count' &&
    sort === undefined &&
    by === undefined &&
    (stat === undefined || stat === 'sum' || (stat === 'mean' && group !== undefined))
  )
    return { as: 'count' };
  if (want === 'share' && sort === undefined && by === undefined && stat === undefined) {
    return (outcome ?? side ?? reason ?? found[0]) ? { as: 'share' } : undefined;
  }
  if (want === 'count' || want === 'share') return undefined;
  if (group !== undefined && stat === undefined && by === undefined) return { as: 'count' };
  if (stat === 'mean' && group !== undefined && by === undefined && outcome === undefined)
    return { as: 'count' };
  if (isOne && stat === undefined) {
    const edge = want === 'when' ? bag.take('edge') : undefined;
    if (edge !== undefined) return { as: 'value', by: edge as Attribute };
    return by === undefined || want === 'when' ? { as: 'list' } : { as: 'value', by };
  }
  // `Total winners` may be their number or the sum of their profits.
  const isNumber =
    stat === 'sum' &&
    by === undefined &&
    /total|overall/.test(bag.text('stat')) &&
    /^(?:win|losers)/.test(bag.text('outcome'));
  if (isNumber) return undefined;
  if (stat !== undefined && (by !== undefined || outcome !== undefined || isPer === undefined)) {
    if (stat === 'sum' && by === undefined && outcome === undefined) return undefined;
    return { as: 'stat', stat: stat as Stat, by };
  }
  if (by === undefined) return want === 'amount' || want === 'length' ? undefined : { as: 'list' };
  const isAdded = by === 'profit' || by === 'fees';
  return isAdded && sort === undefined ? { as: 'stat', stat: 'sum', by } : undefined;
}

/** Days, weeks, months, quarters and years of the equity. */
export function readSpans(bag: Bag): Query | undefined {
  const isPlural = bag.text('subject').endsWith('s');
  const hasRank = bag.has('rank');
  const isSubject = isAboutSpans(bag) && ['count', 'share'].includes(bag.peek('want') ?? '');
  const isPer = bag.has('per') && !hasRank && !isSubject;
  const unit = bag.take('subject') ?? bag.take('every') ?? bag.take('per');
  if (!isSpan(unit)) return undefined;
  const outcome = bag.take('outcome');
  const found = conditions(bag, outcome);
  if (found === undefined) return undefined;
  bag.take('want', 'degree', 'amount');
  const sort = mostOf(bag) ?? sorted(bag, unit, outcome);
  if (hasRank && sort === undefined) return undefined;
  const selection: Selection = {
    of: unit,
    status: 'closed',
    outcome,
    conditions: found,
    period: bag.take('period'),
    month: unit === 'month' ? bag.take('month') : undefined,
    weekday: unit === 'day' ? bag.take('weekday') : undefined,
    sort,
    take: sort === undefined ? undefined : taken(bag, isPlural),
  };
  const group = unit === 'day' ? bag.take('every', 'weekday') : undefined;
  const show = spanShow(bag, selection, isPer);
  if (group !== undefined && (show?.as !== 'stat' || sort !== undefined)) return undefined;
  return show && { kind: 'items', selection, show, group: group as GroupUnit, run: {} };
}

/** `In which year did it make the most?` */
function mostOf(bag: Bag): Selection['sort'] {
  const isMost = bag.peek('measure') === 'profit' && bag.take('rank', 'large') !== undefined;
  return isMost && bag.take('measure') !== undefined
    ? { by: 'profit', descending: true }
    : undefined;
}

function spanShow(
  bag: Bag,
  { sort, take, outcome, conditions: found }: Selection,
  isPer: boolean,
): Show | undefined {
  const want = bag.take('want', 'count', 'share', 'list', 'when');
  const measure = bag.take('measure', 'total_return', 'profit', 'doing');
  const unit = bag.take('unit', 'percent', 'money');
  const by = unit === 'money' || (measure === 'profit' && unit === undefined) ? 'profit' : 'return';
  const stat = bag.take('stat', 'mean', 'median') ?? (isPer ? 'mean' : undefined);
  if (want === 'count' || want === 'share') {
    const isReturn = measure === 'total_return' && outcome !== undefined;
    const isClear = sort === undefined && stat === undefined && (measure === undefined || isReturn);
    const isLimited = outcome !== undefined || found.length > 0;
    return isClear && isLimited ? { as: want } : undefined;
  }
  if (stat !== undefined)
    return sort === undefined || (take?.count ?? 1) > 1
      ? { as: 'stat', stat: stat as Stat, by }
      : undefined;
  return { as: 'list' };
}

/** `Results by weekday`, `Which hour was the best?` */
export function readClock(bag: Bag): Query | undefined {
  const unit = bag.take('every', 'weekday', 'hour') ?? bag.take('subject', 'weekday', 'hour');
  if (unit !== 'weekday' && unit !== 'hour') return undefined;
  bag.take('want', 'list', 'when');
  bag.take('measure', 'total_return', 'profit', 'doing', 'summary');
  bag.take('rank', 'best', 'worst', 'large', 'top');
  bag.take('outcome', 'win', 'lose');
  return { kind: 'clock', unit, period: bag.take('period'), run: {} };
}
