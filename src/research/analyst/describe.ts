/** Words for queries, so that an answer states what it is about. */
import { formatMoney, formatPercent, formatQuantity } from '../../base/format.ts';
import { EXITS } from './exits.ts';
import { WEEKDAYS } from './items.ts';
import type { RunRecord } from './run-records.ts';
import type { Condition } from './tags.ts';
import { daysOf } from './dates.ts';
import type { Attribute, ItemKind, Selection } from './query.ts';

const ATTRIBUTE_NAMES: Readonly<Record<Attribute, string>> = {
  profit: 'profit',
  return: 'return',
  duration: 'calendar days',
  months: 'calendar months',
  bars: 'bars',
  fees: 'fees',
  quantity: 'quantity',
  entry_price: 'entry price',
  exit_price: 'exit price',
  entry: 'entry',
  exit: 'exit',
  count: 'length',
};

export function attributeName(by: Attribute, of: ItemKind): string {
  return of === 'drawdown' && by === 'return' ? 'depth' : ATTRIBUTE_NAMES[by];
}

export function formatAttribute(by: Attribute, value: number): string {
  if (by === 'return') return formatPercent(value);
  if (by === 'profit' || by === 'fees') return formatMoney(value);
  return formatQuantity(value);
}

const OUTCOMES: Readonly<Record<string, string>> = {
  win: 'winning',
  lose: 'losing',
  'not win': 'not winning',
  'not lose': 'not losing',
  flat: 'flat',
};
const MONTHS =
  'January February March April May June July August September October November December'.split(
    ' ',
  );
/** `closed losing short trades in MSFT, exited from 2008-01-01 to 2008-12-31, with a return < −5.00%` */
export function describe(selection: Selection, run: RunRecord): string {
  const { of, outcome, side, symbol, status, conditions, reason } = selection;
  const unit = of === 'streak' ? selection.in : of;
  const words = [
    ...(of === 'streak' ? ['streaks of'] : []),
    ...(unit === 'trade' ? [status] : []),
    ...(outcome === undefined ? [] : [OUTCOMES[outcome]]),
    ...(side === undefined ? [] : [side]),
    `${unit}s`,
    ...(symbol === undefined ? [] : [`in ${symbol}`]),
    ...(reason === undefined ? [] : [`that ended ${EXITS[reason]!.name}`]),
  ].join(' ');
  return [
    words,
    ...timesOf(selection, run),
    ...conditions.map(({ by, is }) => limit(attributeName(by, of), by, is)),
  ].join(', ');
}

function timesOf(
  { of, edge = 'exit', period, weekday, month, hour, in: unit }: Selection,
  run: RunRecord,
): string[] {
  const isTrade = of === 'trade' || unit === 'trade';
  const verb = isTrade ? (edge === 'exit' ? 'exited ' : 'entered ') : '';
  const days = period === undefined ? undefined : daysOf(period, run);
  return [
    ...(days === undefined ? [] : [`${verb}from ${days.from} to ${days.to}`]),
    ...(weekday === undefined ? [] : [`${verb}on a ${WEEKDAYS[weekday]}`]),
    ...(month === undefined ? [] : [`${verb}in ${MONTHS[month - 1]}`]),
    ...(hour === undefined ? [] : [`${verb}from ${hour}:00 to ${hour}:59 UTC`]),
  ];
}

function limit(label: string, by: Attribute, { op, value, upTo }: Condition): string {
  const labels = {
    duration: 'a duration in days',
    months: 'a duration in calendar months',
    bars: 'a duration in bars',
    fees: 'fees',
  };
  const name = `with ${labels[by as keyof typeof labels] ?? `a ${label}`}`;
  if (op === 'between') {
    return `${name} from ${formatAttribute(by, value)} to ${formatAttribute(by, upTo!)}`;
  }
  return `${name} ${op} ${formatAttribute(by, value)}`;
}

export function capitalize(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
