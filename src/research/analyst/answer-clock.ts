/** Answers how the weekdays or the hours of a day differ, for the trades and for the equity. */
import { formatCountOf, formatMoney, formatPercent } from '../../base/format.ts';
import { WEEK } from './answer-groups.ts';
import { describe } from './describe.ts';
import type { Facts } from './facts.ts';
import { hasOutcome, nameOf, needHours, select, type Item } from './items.ts';
import type { Query, Selection } from './query.ts';
import { recordOf, type RunRecord } from './run-records.ts';
import { reply, type Reply } from './reply.ts';

type ClockQuery = Extract<Query, { kind: 'clock' }>;

/** @throws ServiceError `not_found` if the run does not contain the answer. */
export async function answerClock(facts: Facts, query: ClockQuery): Promise<Reply> {
  const { unit, period, run: wanted } = query;
  const run = await recordOf(facts, wanted);
  if (unit === 'hour') await needHours(run);
  const lines: string[] = [];
  for (const edge of ['exit', 'entry'] as const) {
    const selection: Selection = { of: 'trade', status: 'closed', conditions: [], edge, period };
    const { items } = await select(run, selection);
    const head = `${describe(selection, run)} by ${unit} of the ${edge}`;
    lines.push(...stateGroups(run, head, groupsOf(items, unit, edge), stateTrades));
  }
  if (unit === 'weekday') {
    const selection: Selection = { of: 'day', status: 'closed', conditions: [], period };
    const { items } = await select(run, selection);
    const head = `the equity by ${unit}`;
    lines.push(...stateGroups(run, head, groupsOf(items, unit, 'exit'), stateDays));
  }
  return reply(lines, run.cite('/trades/count', '/window/bars'));
}

type Groups = readonly (readonly [name: string, items: readonly Item[]])[];

function groupsOf(
  items: readonly Item[],
  unit: 'weekday' | 'hour',
  edge: 'entry' | 'exit',
): Groups {
  const groups = Map.groupBy(items, (item) => nameOf(String(item[edge]), unit));
  const names = unit === 'weekday' ? WEEK : [...groups.keys()].toSorted();
  return names.flatMap((name) => {
    const own = groups.get(name);
    return own === undefined ? [] : [[name, own] as const];
  });
}

const profitOf = (items: readonly Item[]): number =>
  items.reduce((sum, { profit }) => sum + profit, 0);

function stateGroups(
  { said }: RunRecord,
  head: string,
  groups: Groups,
  state: (items: readonly Item[]) => string,
): string[] {
  if (groups.length === 0) return [`Of ${head}, there are none, in ${said}.`];
  const sorted = groups.toSorted(([, a], [, b]) => profitOf(b) - profitOf(a));
  const [best, worst] = [sorted[0]![0], sorted.at(-1)![0]];
  return [
    `Of ${head}, ${best} has the highest profit and ${worst} the lowest, in ${said}:`,
    ...groups.map(([name, items]) => `- ${name}: ${formatMoney(profitOf(items))} ${state(items)}`),
  ];
}

function stateTrades(items: readonly Item[]): string {
  const won = items.filter((item) => hasOutcome(item, 'win')).length;
  const mean = profitOf(items) / items.length;
  return `(${formatCountOf(items.length, 'trade')}, mean ${formatMoney(mean)}, win rate ${formatPercent(won / items.length)})`;
}

function stateDays(items: readonly Item[]): string {
  const mean = items.reduce((sum, item) => sum + item.return, 0) / items.length;
  return `(${formatCountOf(items.length, 'day')}, mean return ${formatPercent(mean)})`;
}
