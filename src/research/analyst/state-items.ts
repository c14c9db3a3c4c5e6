/** States statistics and figures of items. */
import { formatCount, formatMoney, formatPercent, formatRatio } from '../../base/format.ts';
import { attributeName, capitalize, describe, formatAttribute } from './describe.ts';
import { day, missing } from './facts.ts';
import { hasOutcome, valueOf, type Item } from './items.ts';
import type { Attribute, Selection, Show, Stat } from './query.ts';
import type { RunRecord } from './run-records.ts';

export const STATS: Readonly<Record<Stat, string>> = {
  mean: 'Mean',
  median: 'Median',
  sum: 'Total',
};

export function stateStat(
  run: RunRecord,
  selection: Selection,
  items: readonly Item[],
  { stat, by }: Extract<Show, { as: 'stat' }>,
): string {
  const name = describe(selection, run);
  if (items.length === 0) throw missing(`there are no ${name} in ${run.said}`);
  const value = (attribute: Attribute): number =>
    STATISTICS[stat](items.map((item) => valueOf(item, attribute)));
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
  const isLength = by === 'duration' || by === 'bars' || by === 'months';
  const inDays = by === 'months' ? ` (${formatRatio(value('duration'))} days)` : '';
  return `${label(by)}: ${isLength ? formatRatio(value(by)) : formatAttribute(by, value(by))}${inDays}`;
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
export function chosenBy({ of, sort, take }: Selection, count: number): string {
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

export function stateValue(
  run: RunRecord,
  selection: Selection,
  [item]: readonly Item[],
  by: Attribute,
): string {
  const name = describe(selection, run);
  if (item === undefined) throw missing(`there are no such ${name} in ${run.said}`);
  const isCounted = selection.of === 'streak' || selection.of === 'drawdown';
  const ofWhich = isCounted ? name.replace(/^(streak|drawdown)s/, '$1') : `of the ${name}`;
  const value = by === 'months' ? valueOf(item, by) : item[by]!;
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
export const FIGURES: Readonly<
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

export function figureOf(name: string, items: readonly Item[], run: RunRecord): string {
  const [label, format, formula] = FIGURES[name]!;
  const value = formula(items);
  if (!Number.isFinite(value))
    throw missing(
      `the ${label.toLowerCase()} is undefined for ${items.length} trades in ${run.said}`,
    );
  return `${format(value)} (${formatCount(items.length)} trades)`;
}
