import { ServiceError } from '../../base/errors.ts';
import { formatActor, formatCountOf } from '../../base/format.ts';
import { formatFigure, readFigure } from '../../base/format-figure.ts';
import { RUN_FIGURES } from '../../base/run-figures.ts';
import { at, withQuery } from '../call-api.ts';
import {
  botOf,
  cite,
  citeEvent,
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
  type Facts,
  type Page,
  type Run,
  type Source,
  type Task,
} from './facts.ts';
import { reply, type Questions, type Reply } from './question.ts';
import { HEADLINES, pointerOf, sayFigure } from './results.ts';

interface Version {
  readonly version: number;
  readonly hash: string;
  readonly created_at: string;
  readonly created_by: string;
  readonly created_by_name: string | null;
}

function versionsOf({ get, bot }: Facts): Promise<Source<Page<Version>>> {
  return get(withQuery(at`/bots/${bot}/versions`, { limit: 20 }));
}

async function sayVersions(
  facts: Facts,
  choose: (all: readonly Version[]) => readonly Version[],
): Promise<Reply> {
  const page = await versionsOf(facts);
  const chosen = choose(page.data.items);
  if (chosen.length === 0) throw missing('there is no such version among the newest 20');
  const lines = chosen.map(
    ({ version, created_at, created_by, created_by_name }) =>
      `- version ${version}: ${created_at}, by ${formatActor(created_by, created_by_name)}`,
  );
  const citations = chosen.flatMap((one) => {
    const path = at`/bots/${facts.bot}/versions/${one.version}`;
    return ['created_at', 'created_by'].map((name) =>
      cite({ path, data: one }, `/${name}`, `version ${one.version} ${name}`),
    );
  });
  return reply(['Versions, the newest first:', ...lines], citations);
}

export interface Change {
  readonly pointer: string;
  readonly kind: 'added' | 'removed' | 'changed';
  readonly from?: unknown;
  readonly to?: unknown;
}

/** The two that the prompt names; of one the one before it, too; of none the two newest. */
async function pairOf(facts: Facts): Promise<readonly [number, number]> {
  const named = [...new Set(facts.prompt.versions)];
  const { current_version } = (await botOf(facts)).data;
  const to = named[1] ?? named[0] ?? current_version;
  const from = named.length > 1 ? named[0]! : to - 1;
  if (from >= 1) return [from, to];
  throw missing(
    'there is only version 1',
    'Give the bot another one, with `service-local bots update`.',
  );
}

const MOST_CHANGES = 15;

export function sayChange({ pointer, kind, ...values }: Change): string {
  if (kind === 'added') return `- ${pointer} added: ${quoted(values.to)}`;
  if (kind === 'removed') return `- ${pointer} removed: ${quoted(values.from)}`;
  return `- ${pointer} changed from ${quoted(values.from)} to ${quoted(values.to)}`;
}

async function diff(facts: Facts): Promise<Reply> {
  const [from, to] = await pairOf(facts);
  const path = withQuery(at`/bots/${facts.bot}/versions/${from}/diff`, { to });
  const found = await facts.get<{
    readonly changes: readonly Change[];
    readonly files: readonly { readonly file: string; readonly kind: string }[];
  }>(path);
  const { changes, files } = found.data;
  const shown = changes.slice(0, MOST_CHANGES);
  const lines = [
    ...shown.map(sayChange),
    ...(changes.length > shown.length ? [`- and ${changes.length - shown.length} more`] : []),
    ...files.slice(0, MOST_CHANGES).map(({ file, kind }) => `- the file ${quoted(file)} ${kind}`),
  ];
  const citations = shown.flatMap(({ pointer, kind }, i) =>
    (['from', 'to'] as const)
      .filter(
        (side) => side !== (kind === 'added' ? 'from' : kind === 'removed' ? 'to' : undefined),
      )
      .map((side) => cite(found, `/changes/${i}/${side}`, `${pointer} ${side}`)),
  );
  const count = [cite(found, '/changes', 'changes'), cite(found, '/files', 'files that differ')];
  if (lines.length === 0)
    return reply(`Nothing differs between version ${from} and version ${to}.`, count);
  return reply([`Between version ${from} and version ${to}:`, ...lines], count, citations);
}

async function compare(facts: Facts): Promise<Reply> {
  const [before, after] = await runsOf(facts);
  const lines = HEADLINES.map((name) => {
    const other = readFigure(after.result.data, name);
    return `- ${sayFigure(before, name)} → ${other === null ? 'undefined' : formatFigure(name, other)}`;
  });
  const citations = HEADLINES.flatMap((name) => [
    cite(before.result, pointerOf(name), `first ${RUN_FIGURES[name].path}`),
    cite(after.result, pointerOf(name), `second ${RUN_FIGURES[name].path}`),
  ]);
  return reply([`First ${before.said}; second ${after.said}:`, ...lines], citations);
}

/** Two runs by their ids, those of two versions, or the two newest. */
async function runsOf(facts: Facts): Promise<readonly [Run, Run]> {
  const { ids, versions } = facts.prompt;
  const [one, other] = [...new Set(ids)];
  if (one !== undefined && other !== undefined) {
    return [await runNamed(facts, one), await runNamed(facts, other)];
  }
  if (one !== undefined)
    throw missing('I need the ids of two runs to compare', 'See `service-local tasks list`.');
  const [first, second] = [...new Set(versions)];
  if (first !== undefined && second !== undefined) {
    return [await newestRun(facts, first), await newestRun(facts, second)];
  }
  return twoNewestRuns(facts);
}

export const VERSIONS: Questions = {
  title: 'Versions of the bot',
  questions: [
    {
      id: 'current_version',
      example: 'What is the current version?',
      tells: 'its number and hash',
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
      tells: 'their number',
      keys: ['many version', 'number|count version'],
      async answer(facts) {
        const bot = await botOf(facts);
        const { current_version } = bot.data;
        // They are numbered from 1, without gaps.
        return reply(
          `There ${current_version === 1 ? 'is' : 'are'} ${formatCountOf(current_version, 'version')}.`,
          cite(bot, '/current_version'),
        );
      },
    },
    {
      id: 'version_history',
      versioned: 20,
      example: 'Which versions are there, when were they made and by whom?',
      tells: 'the newest twenty, with when and by whom',
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
      answer: (facts) => {
        const { versions } = facts.prompt;
        return sayVersions(facts, (all) =>
          versions.length === 0 ? all : all.filter(({ version }) => versions.includes(version)),
        );
      },
    },
    {
      id: 'version_diff',
      versioned: 2,
      example: 'What differs between version 1 and version 2?',
      tells: 'all that differs, by its place in the spec; without numbers, of the two newest',
      keys: [
        'differ|different|difference|diff|changed|change|changes',
        'what|how differ|different|difference|diff|changed|change|changes version',
        'difference version',
        'differ|different|difference|diff|changed|change #version',
        'differ|diff|change|changed version',
        'differ|diff|change|changed parameter|param version',
        'change|changed since last|latest|previous version',
      ],
      answer: diff,
    },
    {
      id: 'proposals',
      example: 'Which versions have been proposed?',
      tells: 'the last five proposals, each with why',
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
      tells: 'the command that makes the last proposal the next version',
      keys: [
        'apply|accept|approve|take proposal|proposed',
        'how apply|accept|approve|take|make proposal|proposed',
      ],
      answer: (facts) => proposals(facts, 1),
    },
  ],
};

/** The last ones: what each changes, what its backtest came to, and how a person applies it. */
async function proposals(facts: Facts, most: number): Promise<Reply> {
  const { items } = (await eventsOf(facts, ['chat.proposal'], most)).data;
  if (items.length === 0) throw missing('no version of this bot has been proposed yet');
  const { slug, current_version } = (await botOf(facts)).data;
  const all = await Promise.all(
    items.map(async (event) => {
      const { seq, occurred_at, payload } = event;
      const { rationale, proposal_id, base_version, changes, task_id } = payload as {
        readonly [name: string]: unknown;
        readonly changes?: readonly Change[];
      };
      const command = `service-local bots update ${slug} --proposal ${String(proposal_id)}`;
      const how =
        base_version === current_version
          ? `A person applies it with \`${command}\``
          : `It cannot be applied any more, as the current version is ${current_version}: have it proposed again`;
      const run = await backtestOf(facts, String(task_id));
      return {
        lines: [
          `- ${day(occurred_at)}, event ${seq}: ${quoted(rationale)}, in place of version ${String(base_version)}.`,
          ...(changes ?? []).slice(0, MOST_CHANGES).map((change) => `  ${sayChange(change)}`),
          `  - ${
            typeof run === 'string'
              ? run
              : `${HEADLINES.slice(0, 5)
                  .map((figure) => sayFigure(run, figure))
                  .join(', ')}, in ${run.said}`
          }`,
          `  - ${how}.`,
        ],
        citations: ['rationale', 'base_version', 'proposal_id'].map((name) =>
          citeEvent(facts.bot, event, `/payload/${name}`),
        ),
      };
    }),
  );
  return reply(
    ['The last proposals:', ...all.flatMap(({ lines }) => lines)],
    all.flatMap(({ citations }) => citations),
  );
}

/** What the backtest of a proposal came to, or why there is nothing. */
async function backtestOf(facts: Facts, id: string): Promise<Run | string> {
  try {
    return await runNamed(facts, id);
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return `Of its backtest there is no result: ${error.message}`;
  }
}

const STATUSES = ['queued', 'running', 'success', 'failed', 'canceled'];

function sayTask(task: Task): string {
  const { task_id, kind, version, status, created_at, created_by, created_by_name } = task;
  const others = otherValues(task);
  const values = others === undefined ? '' : ` with other values (${others})`;
  return `${kind} ${task_id} of version ${version}${values}: ${status}, asked for ${created_at} by ${formatActor(created_by, created_by_name)}`;
}

export const RUNS: Questions = {
  title: 'Runs of the bot',
  questions: [
    {
      id: 'run_count',
      example: 'How many runs were there?',
      tells: 'backtests, sessions and tests, by how they ended',
      keys: ['many run|backtest|task', 'number|count run|backtest'],
      async answer(facts) {
        const all = await tasksOf(facts);
        const counted = await Promise.all(
          STATUSES.map(async (status) => cite(await tasksOf(facts, { status }), '/items', status)),
        );
        const total = cite(all, '/items', 'runs');
        const by = counted
          .filter(({ value }) => value !== 0)
          .map(({ figure, value }) => `${value} ${figure}`);
        const most = typeof all.data.next_cursor === 'string' ? 'at least ' : '';
        const text = `There are ${most}${formatCountOf(total.value as number, 'run')}${by.length === 0 ? '' : `: ${by.join(', ')}`}.`;
        return reply(text, total, counted);
      },
    },
    {
      id: 'newest_run',
      example: 'What was the last run?',
      tells: 'its id, when, by whom and how it ended',
      keys: [
        'last|latest|newest run|backtest',
        'when run|backtest',
        'when last|latest|newest run|backtest',
        'who run|backtest',
      ],
      async answer(facts) {
        const page = await tasksOf(facts, { limit: 1 });
        const [task] = page.data.items;
        if (task === undefined) throw await noRuns(facts);
        const citations = ['task_id', 'kind', 'version', 'status', 'created_at', 'created_by'].map(
          (name) => citeTask(task, `/${name}`, name),
        );
        return reply(`The newest is the ${sayTask(task)}.`, citations);
      },
    },
    {
      id: 'list_runs',
      example: 'Which runs were there?',
      tells: 'the newest ten, with their ids',
      keys: ['run', 'backtest', 'which|list|show|all run|backtest|task'],
      async answer(facts) {
        const page = await tasksOf(facts, { limit: 10 });
        const tasks = page.data.items;
        if (tasks.length === 0) throw await noRuns(facts);
        const lines = tasks.map((task) => `- ${sayTask(task)}`);
        return reply(
          ['The newest runs:', ...lines],
          tasks.flatMap((task, i) =>
            ['task_id', 'status'].map((name) => citeTask(task, `/${name}`, `run ${i + 1} ${name}`)),
          ),
        );
      },
    },
    {
      id: 'failed_runs',
      example: 'Which runs failed, and why?',
      tells: 'the newest five that failed',
      keys: [
        'fail|failed|failure|failing',
        'which|why fail|failed run',
        'run|backtest failed|fail',
      ],
      async answer(facts) {
        const page = await tasksOf(facts, { status: 'failed', limit: 5 });
        const tasks = page.data.items;
        if (tasks.length === 0)
          return reply('None has failed.', cite(page, '/items', 'failed runs'));
        const lines = tasks.map(
          ({ task_id, kind, error }) =>
            `- ${kind} ${task_id}: ${error?.code ?? 'unknown'}, ${quoted(error?.detail ?? '')}`,
        );
        return reply(
          ['The newest that failed:', ...lines],
          tasks.flatMap((task, i) => [
            citeTask(task, '/error/code', `failed ${i + 1} code`),
            citeTask(task, '/error/detail', `failed ${i + 1} detail`),
          ]),
        );
      },
    },
    {
      id: 'compare_runs',
      versioned: 2,
      example: 'How do the last two runs compare?',
      tells:
        'two runs side by side: those whose ids you give, of two versions that you name, or the two newest',
      keys: [
        'compare|comparison|compared',
        'compare|comparison run|backtest|result|version',
        'two run|backtest',
        'compare|comparison last|latest|newest|two run|backtest|result|version',
        'better|worse run|version|backtest',
        'better|worse run than',
      ],
      answer: compare,
    },
  ],
};

async function noRuns(facts: Facts): Promise<Error> {
  const { slug } = (await botOf(facts)).data;
  return missing(
    'there is no run of this bot yet',
    `Make one with \`service-local bots backtest ${slug}\`.`,
  );
}
