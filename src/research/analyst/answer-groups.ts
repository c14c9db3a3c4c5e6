/** Answers queries about groups of trades or days: one line for each year, weekday, symbol and so on. */
import { EXIT_REASONS } from '../../backtest/report/exit-reasons.ts';
import { formatCount, formatRatio } from '../../base/format.ts';
import { attributeName, capitalize, describe } from './describe.ts';
import { exitsOf } from './exits.ts';
import { missing } from './facts.ts';
import { nameOf, needHours, select, WEEKDAYS, type Item } from './items.ts';
import type { GroupUnit, Query, Selection, Show, SpanUnit } from './query.ts';
import type { RunRecord } from './run-records.ts';
import { reply, type Reply } from './reply.ts';
import type { TradeRow } from './result-files.ts';
import { figureOf, FIGURES, stateStat, STATS } from './state-items.ts';

const MOST_GROUPS = 40;
/** Names of the weekdays, Monday first. */
export const WEEK = [...WEEKDAYS.slice(1), WEEKDAYS[0]!];

type ItemsQuery = Extract<Query, { kind: 'items' }>;

/** Units of which an empty group says nothing, such as Sundays. */
const isFound = (unit: GroupUnit): boolean =>
  ['symbol', 'side', 'weekday', 'hour', 'reason'].includes(unit);

/** One line for each group. If a question leaves it open, weekdays and hours are of the exit and the entry. */
export async function answerGroups(
  run: RunRecord,
  query: ItemsQuery,
  unit: GroupUnit,
): Promise<Reply> {
  const { selection } = query;
  if (unit === 'hour') await needHours(run);
  const isTrade = selection.of === 'trade';
  const isOpen = isTrade && (unit === 'weekday' || unit === 'hour') && selection.edge === undefined;
  const edges = isOpen ? (['exit', 'entry'] as const) : [selection.edge ?? 'exit'];
  const lines: string[] = [];
  for (const edge of edges) {
    const of = isOpen ? `${unit} of the ${edge}` : unit;
    lines.push(...(await linesOf(run, { ...query, selection: { ...selection, edge } }, unit, of)));
  }
  return reply(lines, run.cite(isTrade ? '/trades/count' : '/window/bars'));
}

async function linesOf(
  run: RunRecord,
  { selection, show, isMeanOfGroups }: ItemsQuery,
  unit: GroupUnit,
  named: string,
): Promise<string[]> {
  const { items, count } = await select(run, selection);
  const name = describe(selection, run);
  const reasonOf = unit === 'reason' ? await exitsOf(run) : undefined;
  const keyOf = (item: Item): string => {
    if (reasonOf !== undefined)
      return EXIT_REASONS[reasonOf(item as unknown as TradeRow) ?? 'market'];
    return unit === 'symbol' || unit === 'side'
      ? String((item as unknown as Record<string, unknown>)[unit])
      : nameOf(String(item[selection.edge!]), unit);
  };
  const groups = Map.groupBy(items, keyOf);
  const names = await namesOf(run, selection, unit, [...groups.keys()]);
  const lines: string[] = [];
  if (show.as === 'count' && !isFound(unit)) {
    lines.push(
      `${capitalize(name)} per ${unit}: ${formatRatio(count / names.length)} on average (${formatCount(count)} in ${formatCount(names.length)} ${unit}s), in ${run.said}.`,
    );
  } else if (isMeanOfGroups)
    throw missing(`I do not average ${show.as} per ${unit}`, `Ask for it by ${unit}.`);
  else lines.push(`${groupLabel(show)}${name} by ${named}, in ${run.said}:`);
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
  return lines;
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
  if (unit === 'weekday') return WEEK.filter((name) => found.includes(name));
  if (isFound(unit)) return found.toSorted();
  const { period } = selection;
  const spans = await select(run, {
    of: unit as SpanUnit,
    status: 'closed',
    conditions: [],
    period,
  });
  return spans.items.map((item) => nameOf(String(item.exit), unit));
}
