/** Answers queries about trades, spans of time, drawdowns and streaks. */
import { formatCount, formatPercent } from '../../base/format.ts';
import { capitalize, describe } from './describe.ts';
import { missing, type Facts } from './facts.ts';
import { stateExits } from './exits.ts';
import { select, type Item, type Selected } from './items.ts';
import type { Query, Selection, Show } from './query.ts';
import { answerGroups } from './answer-groups.ts';
import { recordOf, type RunRecord } from './run-records.ts';
import { reply, type Reply } from './reply.ts';
import { chosenBy, figureOf, FIGURES, stateStat, stateValue } from './state-items.ts';

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
  const { text, citations } = await answerPlain(run, query);
  const isOfExits = query.selection.reason !== undefined || query.group === 'reason';
  if (!isOfExits) return { text, citations };
  const { citation } = await run.events();
  const exits = query.group === 'reason' ? [] : [await stateExits(run)];
  return reply([text, ...exits], citations, citation);
}

async function answerPlain(run: RunRecord, query: ItemsQuery): Promise<Reply> {
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
  const { outcome, conditions, side, of, reason } = selection;
  const isLimited = outcome !== undefined || conditions.length > 0;
  const isPart = isLimited || side !== undefined || reason !== undefined;
  if (of === 'streak' || !isPart) return undefined;
  const base: Selection = {
    ...selection,
    outcome: undefined,
    conditions: [],
    side: isLimited || reason !== undefined ? side : undefined,
    reason: isLimited ? reason : undefined,
    sort: undefined,
    take: undefined,
  };
  const { count } = await select(run, base);
  return { count, name: describe(base, run) };
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
