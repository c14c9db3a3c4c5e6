import { TASK_STATUSES } from '../../base/task-statuses.ts';
import { ServiceError } from '../../base/errors.ts';
import { formatActor, formatCountOf } from '../../base/format.ts';
import { at, withQuery } from '../call-api.ts';
import { HEADLINES, sideBySide, stateFigure } from './answer-figure.ts';
import {
  botOf,
  cite,
  citeEvent,
  citeFields,
  citeTask,
  day,
  eventsOf,
  missing,
  newestRun,
  otherValues,
  quoted,
  runNamed,
  tasksOf,
  twoNewestRuns,
  type Event,
  type Facts,
  type Page,
  type Run,
  type Task,
} from './facts.ts';
import { andMore, reply, type Reply } from './reply.ts';
import { SHORT_HEADLINES } from './topics-result.ts';
import type { TopicPart } from './topics.ts';

interface Version {
  readonly version: number;
  readonly created_at: string;
  readonly created_by: string;
  readonly created_by_name: string | null;
}

export interface Change {
  readonly pointer: string;
  readonly kind: 'added' | 'removed' | 'changed';
  readonly from?: unknown;
  readonly to?: unknown;
}

const MOST_CHANGES = 15;

export function stateVersionChange({ pointer, kind, from, to }: Change): string {
  if (kind === 'added') return `- ${pointer} added: ${quoted(to)}`;
  if (kind === 'removed') return `- ${pointer} removed: ${quoted(from)}`;
  return `- ${pointer} changed from ${quoted(from)} to ${quoted(to)}`;
}

async function history(facts: Facts): Promise<Reply> {
  const page = await facts.get<Page<Version>>(
    withQuery(at`/bots/${facts.bot}/versions`, { limit: 20 }),
  );
  const chosen = page.data.items.filter(
    ({ version }) => facts.versions.length === 0 || facts.versions.includes(version),
  );
  if (chosen.length === 0) throw missing('the newest 20 versions do not include that version');
  const lines = chosen.map(
    ({ version, created_at, created_by, created_by_name }) =>
      `- version ${version}: ${created_at}, by ${formatActor(created_by, created_by_name)}`,
  );
  return reply(
    ['Versions, the newest first:', ...lines],
    chosen.flatMap((one) =>
      citeFields(
        { path: at`/bots/${facts.bot}/versions/${one.version}`, data: one },
        '',
        ['created_at', 'created_by'],
        (field) => `version ${one.version} ${field}`,
      ),
    ),
  );
}

/** Differences of two named versions, of a version and the one before, or of the two newest. */
async function differences(facts: Facts): Promise<Reply> {
  const [first, second] = [...new Set(facts.versions)];
  const to = second ?? first ?? (await botOf(facts)).data.current_version;
  const from = second === undefined ? to - 1 : first!;
  if (from < 1)
    throw missing(
      'the bot has only version 1',
      'Create another one with `service-local bots update`.',
    );
  const found = await facts.get<{
    readonly changes: readonly Change[];
    readonly files: readonly { readonly file: string; readonly kind: string }[];
  }>(withQuery(at`/bots/${facts.bot}/versions/${from}/diff`, { to }));
  const { changes, files } = found.data;
  const shown = changes.slice(0, MOST_CHANGES);
  const lines = [
    ...shown.map(stateVersionChange),
    ...andMore(changes, shown),
    ...files.slice(0, MOST_CHANGES).map(({ file, kind }) => `- the file ${quoted(file)} ${kind}`),
  ];
  const sides = { added: ['to'], removed: ['from'], changed: ['from', 'to'] } as const;
  const head =
    lines.length === 0
      ? `Nothing differs between version ${from} and version ${to}.`
      : `Between version ${from} and version ${to}:`;
  return reply(
    [head, ...lines],
    [cite(found, '/changes', 'changes'), cite(found, '/files', 'files that differ')],
    shown.flatMap(({ pointer, kind }, i) =>
      sides[kind].map((side) => cite(found, `/changes/${i}/${side}`, `${pointer} ${side}`)),
    ),
  );
}

/** Two runs side by side: of the versions, with the ids, or the two newest. */
export async function compareRuns(
  facts: Facts,
  [first, second]: readonly number[],
): Promise<Reply> {
  const [one, other] = [...new Set(facts.ids)];
  if (one !== undefined && other === undefined) {
    throw missing(
      'a comparison needs the ids of two runs',
      'List them with `service-local tasks list`.',
    );
  }
  const [before, after] =
    one !== undefined
      ? [await runNamed(facts, one), await runNamed(facts, other!)]
      : first !== undefined && second !== undefined
        ? [await newestRun(facts, first), await newestRun(facts, second)]
        : await twoNewestRuns(facts);
  const { lines, citations } = sideBySide(before, after, HEADLINES);
  return reply([`First ${before.said}; second ${after.said}:`, ...lines], citations);
}

async function proposals(facts: Facts, most: number): Promise<Reply> {
  const { items } = (await eventsOf(facts, ['chat.proposal'], most)).data;
  if (items.length === 0) throw missing('no version of this bot has been proposed yet');
  const lines = await Promise.all(items.map((event) => stateProposal(facts, event)));
  return reply(
    ['The last proposals:', ...lines.flat()],
    items.flatMap((event) =>
      ['rationale', 'base_version', 'proposal_id'].map((name) =>
        citeEvent(facts.bot, event, `/payload/${name}`),
      ),
    ),
  );
}

/** Changes of a proposal, the result of its backtest, and how a person applies it. */
async function stateProposal(
  facts: Facts,
  { seq, occurred_at, payload }: Event,
): Promise<string[]> {
  const { slug, current_version } = (await botOf(facts)).data;
  const { rationale, proposal_id, base_version, task_id } = payload;
  const changes = (payload['changes'] ?? []) as readonly Change[];
  const isCurrent = base_version === current_version;
  const how = isCurrent
    ? `A person applies it with \`service-local bots update ${slug} --proposal ${String(proposal_id)}\``
    : `It cannot be applied, because the current version is now ${current_version}: request a new proposal`;
  const run = await backtestOf(facts, String(task_id));
  return [
    `- ${day(occurred_at)}, event ${seq}: ${quoted(rationale)}, in place of version ${String(base_version)}.`,
    ...changes.slice(0, MOST_CHANGES).map((change) => `  ${stateVersionChange(change)}`),
    `  - ${typeof run === 'string' ? run : `${SHORT_HEADLINES.map((figure) => stateFigure(run, figure)).join(', ')}, in ${run.said}`}`,
    `  - ${how}.`,
  ];
}

/** The run, or the reason why it has no result. */
async function backtestOf(facts: Facts, id: string): Promise<Run | string> {
  try {
    return await runNamed(facts, id);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return `Its backtest has no result: ${error.message}`;
  }
}

function stateTask(task: Task): string {
  const { task_id, kind, version, status, created_at, created_by, created_by_name } = task;
  const others = otherValues(task);
  const values = others === undefined ? '' : ` with other values (${others})`;
  return `${kind} ${task_id} of version ${version}${values}: ${status}, requested ${created_at} by ${formatActor(created_by, created_by_name)}`;
}

async function countRuns(facts: Facts): Promise<Reply> {
  const all = await tasksOf(facts);
  const counted = await Promise.all(
    TASK_STATUSES.map(async (status) => cite(await tasksOf(facts, { status }), '/items', status)),
  );
  const total = cite(all, '/items', 'runs');
  const by = counted
    .filter(({ value }) => value !== 0)
    .map(({ figure, value }) => `${value} ${figure}`);
  const least = typeof all.data.next_cursor === 'string' ? 'at least ' : '';
  const text = `There are ${least}${formatCountOf(total.value as number, 'run')}${by.length === 0 ? '' : `: ${by.join(', ')}`}.`;
  return reply(text, total, counted);
}

async function listRuns(facts: Facts): Promise<Reply> {
  const { items } = (await tasksOf(facts, { limit: 10 })).data;
  if (items.length === 0) throw await noRuns(facts);
  return reply(
    ['The newest runs:', ...items.map((task) => `- ${stateTask(task)}`)],
    items.flatMap((task, i) =>
      ['task_id', 'status'].map((name) => citeTask(task, `/${name}`, `run ${i + 1} ${name}`)),
    ),
  );
}

async function newestTask(facts: Facts): Promise<Reply> {
  const [task] = (await tasksOf(facts, { limit: 1 })).data.items;
  if (task === undefined) throw await noRuns(facts);
  const names = ['task_id', 'kind', 'version', 'status', 'created_at', 'created_by'];
  return reply(
    `The newest is the ${stateTask(task)}.`,
    names.map((name) => citeTask(task, `/${name}`, name)),
  );
}

async function failedRuns(facts: Facts): Promise<Reply> {
  const page = await tasksOf(facts, { status: 'failed', limit: 5 });
  const { items } = page.data;
  if (items.length === 0) return reply('None has failed.', cite(page, '/items', 'failed runs'));
  return reply(
    [
      'The newest that failed:',
      ...items.map(
        ({ task_id, kind, error }) =>
          `- ${kind} ${task_id}: ${error?.code ?? 'unknown'}, ${quoted(error?.detail ?? '')}`,
      ),
    ],
    items.flatMap((task, i) =>
      ['code', 'detail'].map((name) => citeTask(task, `/error/${name}`, `failed ${i + 1} ${name}`)),
    ),
  );
}

async function noRuns(facts: Facts): Promise<Error> {
  const { slug } = (await botOf(facts)).data;
  return missing(
    'this bot has no run yet',
    `Start one with \`service-local bots backtest ${slug}\`.`,
  );
}

export const VERSION_TOPICS: TopicPart = {
  title: 'Versions and runs of the bot',
  topics: [
    {
      id: 'current_version',
      example: 'What is the current version?',
      about: 'its number and hash',
      keys: ['version', 'which|current|newest|latest version'],
      async answer(facts) {
        const bot = await botOf(facts);
        const { current_version, version_hash } = bot.data;
        const text = `It is version ${current_version}, with the hash ${version_hash}.`;
        return reply(text, cite(bot, '/current_version'), cite(bot, '/version_hash'));
      },
    },
    {
      id: 'version_count',
      example: 'How many versions are there?',
      about: 'their number',
      keys: ['many version', 'number|count version'],
      async answer(facts) {
        const bot = await botOf(facts);
        const count = bot.data.current_version;
        // Versions are numbered from 1, without gaps.
        const text = `There ${count === 1 ? 'is' : 'are'} ${formatCountOf(count, 'version')}.`;
        return reply(text, cite(bot, '/current_version'));
      },
    },
    {
      id: 'version_history',
      names: 20,
      example: 'Which versions are there, when were they made and who made them?',
      about: 'the newest twenty, with times and authors',
      keys: [
        'list|show|all|history version',
        'which version are',
        'when version',
        'who|whom version',
        'version history',
        'when|last update|modified|edited',
        'when last update|modified|edited',
        'when version made|created|create',
        'who|whom made|created|create version',
      ],
      answer: history,
    },
    {
      id: 'version_diff',
      names: 2,
      example: 'What differs between version 1 and version 2?',
      about: 'differences of two versions, by default the two newest',
      keys: [
        'differ|different|difference|diff|changed|change|changes',
        'what|how differ|different|difference|diff|changed|change|changes version',
        'difference version',
        'differ|diff|change|changed version',
        'differ|diff|change|changed parameter|param version',
        'change|changed since last|latest|previous version',
      ],
      answer: differences,
    },
    {
      id: 'proposals',
      example: 'Which versions have been proposed?',
      about: 'the last five proposals with their reasons',
      keys: [
        'proposal',
        'propose|proposed',
        'propose|proposed version',
        'which propose|proposed version',
      ],
      answer: (facts) => proposals(facts, 5),
    },
    {
      id: 'apply_proposal',
      example: 'How do I apply the proposal?',
      about: 'the command that makes the last proposal the next version',
      keys: [
        'apply|accept|approve|take proposal|proposed',
        'how apply|accept|approve|take|make proposal|proposed',
      ],
      answer: (facts) => proposals(facts, 1),
    },
    {
      id: 'run_count',
      example: 'How many runs were there?',
      about: 'all tasks, by status',
      keys: ['many run|backtest|task', 'number|count run|backtest'],
      answer: countRuns,
    },
    {
      id: 'newest_run',
      example: 'What was the last run?',
      about: 'its id, author and status',
      keys: [
        'last|latest|newest run|backtest',
        'when run|backtest',
        'when last|latest|newest run|backtest',
        'who run|backtest',
      ],
      answer: newestTask,
    },
    {
      id: 'list_runs',
      example: 'Which runs were there?',
      about: 'the newest ten, with their ids',
      keys: ['run', 'backtest', 'which|list|show|all run|backtest|task'],
      answer: listRuns,
    },
    {
      id: 'failed_runs',
      example: 'Which runs failed, and why?',
      about: 'the newest five that failed',
      keys: [
        'fail|failed|failure|failing',
        'which|why fail|failed run',
        'run|backtest failed|fail',
      ],
      answer: failedRuns,
    },
    {
      id: 'compare_runs',
      names: 2,
      example: 'How do the last two runs compare?',
      about: 'two runs side by side, by ids or versions or the two newest',
      keys: [
        'compare|comparison|compared',
        'compare|comparison run|backtest|result|version',
        'two run|backtest',
        'compare|comparison last|latest|newest|two run|backtest|result|version',
        'better|worse run|version|backtest',
        'better|worse run than',
      ],
      answer: (facts) => compareRuns(facts, [...new Set(facts.versions)]),
    },
  ],
};
