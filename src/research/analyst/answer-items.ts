/** Answers queries about trades, spans of time, drawdowns and streaks. */
import { formatCount, formatMoney, formatPercent, formatRatio } from '../../base/format.ts';
import { attributeName, capitalize, describe, formatAttribute } from './describe.ts';
import { day, missing, type Facts } from './facts.ts';
import { hasOutcome, nameOf, select, type Item, type Selected } from './items.ts';
import type { Attribute, GroupUnit, Query, Selection, Show, Stat } from './query.ts';
import { recordOf, type RunRecord } from './records.ts';
import { reply, type Reply } from './reply.ts';

type ItemsQuery = Extract<Query, { kind: 'items' }>;

/** Longest list, which leaves room for citations of each item. */
const MOST_LISTED = 40;
const MOST_CITED = 16;
const MOST_GROUPS = 40;

/** @throws ServiceError `not_found` if the run does not contain the answer. */
export async function answerItems(facts: Facts, query: ItemsQuery): Promise<Reply> {
  const run = await recordOf(facts, query.run);
  return answerItemsOf(run, query);
}

export async function answerItemsOf(run: RunRecord, query: ItemsQuery): Promise<Reply> {
  const { selection, show, group } = query;
  if (group !== undefined) return answerGroups(run, query, group);
  const selected = await select(run, selection);
  const citations = citationsOf(run, selection, selected.items);
  if (show.as === 'list') {
    const other = await listedByEntry(run, selection, selected);
    return reply([...listed(run, selection, selected), ...other], citations);
  }
  const first = await state(run, selection, show, selected);
  const lines = [`${first}, in ${run.said}.`, ...(await byEntry(run, selection, show, first))];
  const isShort = selected.items.length <= MOST_GROUPS;
  if (show.as === 'value' || (show.as === 'stat' && isSpan(selection.of) && isShort)) {
    lines.push(...selected.items.map(({ line }) => `- ${line}`));
  }
  return reply(lines, citations);
}

const isSpan = (of: Selection['of']): boolean =>
  of !== 'trade' && of !== 'drawdown' && of !== 'streak';

/** The same by the entry of the trades, if a question leaves open which of the two it means. */
async function byEntry(
  run: RunRecord,
  selection: Selection,
  show: Show,
  first: string,
): Promise<string[]> {
  const other = withEntry(selection);
  if (other === undefined) return [];
  const found = await select(run, other);
  if (found.items.length === 0 && show.as !== 'count') return [];
  const second = await state(run, other, show, found);
  const figure = (text: string): string => text.slice(text.indexOf(': '));
  return figure(first) === figure(second)
    ? []
    : [`By their entry instead of their exit: ${second}.`];
}

/** The selection by entry, if a question leaves open which time of the trades it means. */
function withEntry(selection: Selection): Selection | undefined {
  const { of, period, weekday, month, hour, edge } = selection;
  const isTimed = [period, weekday, month, hour].some((one) => one !== undefined);
  return of === 'trade' && isTimed && edge === undefined
    ? { ...selection, edge: 'entry' }
    : undefined;
}

/** The ranked trades by their entry, if these are other ones. */
async function listedByEntry(
  run: RunRecord,
  selection: Selection,
  { items }: Selected,
): Promise<string[]> {
  const other = withEntry(selection);
  if (other === undefined || selection.take === undefined) return [];
  const found = await select(run, other);
  const isSame = JSON.stringify(found.items) === JSON.stringify(items);
  return isSame || found.items.length === 0
    ? []
    : [`By their entry instead of their exit: ${found.items.map(({ line }) => line).join('; ')}.`];
}

/** `Closed losing trades: 51 of 87 closed trades` */
async function state(
  run: RunRecord,
  selection: Selection,
  show: Show,
  selected: Selected,
): Promise<string> {
  const { items } = selected;
  const name = describe(selection, run);
  switch (show.as) {
    case 'count': {
      const base = await baseOf(run, selection);
      const of =
        base === undefined || base.count === 0
          ? ''
          : ` of ${formatCount(base.count)} ${base.name} (${formatPercent(selected.count / base.count)})`;
      return `${capitalize(name)}: ${formatCount(selected.count)}${of}`;
    }
    case 'share': {
      const base = (await baseOf(run, selection))!;
      if (base.count === 0) throw missing(`there are no ${base.name} in ${run.said}`);
      const share = formatPercent(selected.count / base.count);
      return `Share of ${name} among ${base.name}: ${share} (${formatCount(selected.count)} of ${formatCount(base.count)})`;
    }
    case 'stat':
      return stateStat(run, selection, items, show);
    case 'value':
      return stateValue(run, selection, items, show.by);
    case 'figure':
      return `${FIGURES[show.name]![0]} of ${name}: ${figureOf(show.name, items, run)}`;
    case 'list':
  }
  return '';
}

/** The items without the outcome, the conditions or the side, of which the selected ones are a part. */
async function baseOf(run: RunRecord, selection: Selection) {
  const { outcome, conditions, side, of } = selection;
  const isLimited = outcome !== undefined || conditions.length > 0;
  if (of === 'streak' || (!isLimited && side === undefined)) return undefined;
  const base: Selection = {
    ...selection,
    outcome: undefined,
    conditions: [],
    side: isLimited ? side : undefined,
    sort: undefined,
    take: undefined,
  };
  const { count } = await select(run, base);
  return { count, name: describe(base, run) };
}

const STATS: Readonly<Record<Stat, string>> = { mean: 'Mean', median: 'Median', sum: 'Total' };

function stateStat(
  run: RunRecord,
  selection: Selection,
  items: readonly Item[],
  { stat, by }: Extract<Show, { as: 'stat' }>,
): string {
  const name = describe(selection, run);
  if (items.length === 0) throw missing(`there are no ${name} in ${run.said}`);
  const value = (attribute: Attribute): number =>
    STATISTICS[stat](items.map((item) => Number(item[attribute])));
  const chosen = selection.take === undefined ? '' : `the ${chosenBy(selection, items.length)} of `;
  const label = (attribute: Attribute): string =>
    `${STATS[stat]} ${attributeName(attribute, selection.of)} of ${chosen}${name} (${formatCount(items.length)})`;
  if (by === undefined) {
    const more =
      stat === 'sum'
        ? ''
        : ` (${STATS[stat].toLowerCase()} return ${formatPercent(value('return'))})`;
    return `${label('profit')}: ${formatMoney(value('profit'))}${more}`;
  }
  const isLength = by === 'duration' || by === 'bars';
  return `${label(by)}: ${isLength ? formatRatio(value(by)) : formatAttribute(by, value(by))}`;
}

const sum = (values: readonly number[]): number => values.reduce((all, one) => all + one, 0);
const STATISTICS: Readonly<Record<Stat, (values: readonly number[]) => number>> = {
  sum,
  mean: (values) => sum(values) / values.length,
  median(values) {
    const sorted = values.toSorted((a, b) => a - b);
    const middle = sorted.slice(
      Math.ceil(sorted.length / 2) - 1,
      Math.floor(sorted.length / 2) + 1,
    );
    return sum(middle) / middle.length;
  },
};

/** `5 highest by profit`, `longest`, `2nd lowest by depth` */
function chosenBy({ of, sort, take }: Selection, count: number): string {
  const { by, descending } = sort!;
  const isTime = by === 'entry' || by === 'exit';
  const isLength = by === 'duration' || by === 'bars' || by === 'count';
  const [up, down] = isTime
    ? ['first', 'last']
    : isLength
      ? ['shortest', 'longest']
      : ['lowest', 'highest'];
  const place = take!.from + 1;
  const number = place > 1 ? `${place}${SUFFIXES[place] ?? 'th'} ` : count > 1 ? `${count} ` : '';
  const key = isTime || isLength ? '' : ` by ${attributeName(by, of)}`;
  return `${number}${descending ? down : up}${key}`;
}

const SUFFIXES: Readonly<Record<number, string>> = { 2: 'nd', 3: 'rd' };

function stateValue(
  run: RunRecord,
  selection: Selection,
  [item]: readonly Item[],
  by: Attribute,
): string {
  const name = describe(selection, run);
  if (item === undefined) throw missing(`there are no such ${name} in ${run.said}`);
  const isCounted = selection.of === 'streak' || selection.of === 'drawdown';
  const ofWhich = isCounted ? name.replace(/^(streak|drawdown)s/, '$1') : `of the ${name}`;
  const value = item[by]!;
  const text =
    typeof value === 'string'
      ? day(value)
      : by === 'duration'
        ? `${formatRatio(value)
            .replace(/\.00$/, '')
            .replace(/\B(?=(\d{3})+$)/, ',')} days`
        : formatAttribute(by, value);
  return `${capitalize(attributeName(by, selection.of))} of the ${chosenBy(selection, 1)} ${ofWhich}: ${text}`;
}

/** Figures of sets of trades: label, format and formula. */
const FIGURES: Readonly<
  Record<string, readonly [string, (value: number) => string, (items: readonly Item[]) => number]>
> = {
  win_rate: ['Win rate', formatPercent, (items) => part(items, 'win').length / items.length],
  loss_rate: ['Loss rate', formatPercent, (items) => part(items, 'lose').length / items.length],
  expectancy: [
    'Expectancy',
    formatMoney,
    (items) => STATISTICS.mean(items.map(({ profit }) => profit)),
  ],
  profit_factor: [
    'Profit factor',
    formatRatio,
    (items) => gross(items, 'win') / -gross(items, 'lose'),
  ],
  payoff: [
    'Mean win ÷ mean loss',
    formatRatio,
    (items) =>
      gross(items, 'win') /
      part(items, 'win').length /
      (-gross(items, 'lose') / part(items, 'lose').length),
  ],
  gross_profit: ['Gross profit', formatMoney, (items) => gross(items, 'win')],
  gross_loss: ['Gross loss', formatMoney, (items) => gross(items, 'lose')],
};

const part = (items: readonly Item[], outcome: string): Item[] =>
  items.filter((item) => hasOutcome(item, outcome));
const gross = (items: readonly Item[], outcome: string): number =>
  sum(part(items, outcome).map(({ profit }) => profit));

function figureOf(name: string, items: readonly Item[], run: RunRecord): string {
  const [label, format, formula] = FIGURES[name]!;
  const value = formula(items);
  if (!Number.isFinite(value))
    throw missing(
      `the ${label.toLowerCase()} is undefined for ${items.length} trades in ${run.said}`,
    );
  return `${format(value)} (${formatCount(items.length)} trades)`;
}

function listed(run: RunRecord, selection: Selection, { items, count }: Selected): string[] {
  const name = describe(selection, run);
  if (items.length === 0) return [`${capitalize(name)}: none, in ${run.said}.`];
  const shown = items.slice(0, MOST_LISTED);
  const more = items.length > shown.length ? `, of which these are the first ${shown.length}` : '';
  const head =
    selection.take === undefined
      ? `${name} (${formatCount(count)})`
      : `${chosenBy(selection, items.length)} of ${formatCount(count)} ${name}`;
  return [`${capitalize(head)}, in ${run.said}${more}:`, ...shown.map(({ line }) => `- ${line}`)];
}

function citationsOf(
  run: RunRecord,
  selection: Selection,
  items: readonly Item[],
): Reply['citations'] {
  const { of, sort, take, period, outcome } = selection;
  const isTrade = of === 'trade' || selection.in === 'trade';
  const base = run.cite(isTrade ? '/trades/count' : '/window/bars');
  const isWhole = period === undefined && outcome === undefined && sort?.by === 'return';
  if (of === 'trade') {
    const places = outcome === undefined ? ['average', 'expectancy'] : ['win_rate'];
    base.push(...run.cite(...places.map((place) => `/trades/${place}`)));
  }
  if (
    of === 'day' &&
    isWhole &&
    take?.count === 1 &&
    run.run?.result.data.conventions.sampling === 'day'
  ) {
    base.push(...run.cite(sort.descending ? '/returns/best_day' : '/returns/worst_day'));
  }
  return items.length > MOST_CITED ? base : [...base, ...items.flatMap((item) => item.cite())];
}

/** One line for each year, weekday, symbol and so on. */
async function answerGroups(
  run: RunRecord,
  { selection, show, isMeanOfGroups }: ItemsQuery,
  unit: GroupUnit,
): Promise<Reply> {
  const { items, count } = await select(run, selection);
  const edge = selection.edge ?? 'exit';
  const name = describe(selection, run);
  const keyOf = (item: Item): string =>
    unit === 'symbol' || unit === 'side'
      ? String((item as unknown as Record<string, unknown>)[unit])
      : nameOf(String(item[edge]), unit);
  const groups = Map.groupBy(items, keyOf);
  const names = await namesOf(run, selection, unit, [...groups.keys()]);
  const lines: string[] = [];
  if (show.as === 'count' && unit !== 'symbol' && unit !== 'side' && unit !== 'weekday') {
    lines.push(
      `${capitalize(name)} per ${unit}: ${formatRatio(count / names.length)} on average (${formatCount(count)} in ${formatCount(names.length)} ${unit}s), in ${run.said}.`,
    );
  } else if (isMeanOfGroups)
    throw missing(`I do not average ${show.as} per ${unit}`, `Ask for it by ${unit}.`);
  else lines.push(`${groupLabel(show)}${name} by ${unit}, in ${run.said}:`);
  if (names.length <= MOST_GROUPS) {
    for (const group of names) {
      const own = groups.get(group) ?? [];
      lines.push(
        `- ${group}: ${own.length === 0 && show.as !== 'count' ? 'none' : stateGroup(run, selection, show, own)}`,
      );
    }
  } else if (show.as !== 'count') {
    throw missing(
      `there are ${names.length} ${unit}s in ${run.said}`,
      'Name a year, or ask for it by year.',
    );
  }
  return reply(lines, run.cite('/trades/count'));
}

/** Label of the lines of groups. */
function groupLabel(show: Show): string {
  if (show.as === 'figure') return `${FIGURES[show.name]![0]} of `;
  if (show.as !== 'stat') return 'Number of ';
  return `${STATS[show.stat]} ${attributeName(show.by ?? 'profit', 'trade')} of `;
}

function stateGroup(
  run: RunRecord,
  selection: Selection,
  show: Show,
  items: readonly Item[],
): string {
  if (show.as === 'count') return formatCount(items.length);
  if (show.as === 'figure') return figureOf(show.name, items, run);
  const text = stateStat(
    run,
    { ...selection, take: undefined },
    items,
    show as Extract<Show, { as: 'stat' }>,
  );
  return text.slice(text.indexOf(': ') + 2);
}

/** Years, months and so on of the run, also those without trades; else the groups in order. */
async function namesOf(
  run: RunRecord,
  selection: Selection,
  unit: GroupUnit,
  found: readonly string[],
): Promise<readonly string[]> {
  if (unit === 'symbol' || unit === 'side' || unit === 'weekday') return found.toSorted();
  const { period } = selection;
  const spans = await select(run, { of: unit, status: 'closed', conditions: [], period });
  return spans.items.map((item) => nameOf(String(item.exit), unit));
}
