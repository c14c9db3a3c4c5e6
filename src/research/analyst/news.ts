import { DAY } from '../../base/durations.ts';
import { ServiceError } from '../../base/errors.ts';
import { formatCountOf } from '../../base/format.ts';
import { at, withQuery } from '../call-api.ts';
import { stateFigure } from './answer-figure.ts';
import {
  botOf,
  cite,
  citeEvent,
  eventsOf,
  quoted,
  runNamed,
  type Event,
  type Facts,
} from './facts.ts';
import { reply, type Reply } from './reply.ts';
import { SHORT_HEADLINES } from './topics-result.ts';
import { stateEvent } from './topics-state.ts';
import { stateVersionChange, type Change } from './topics-versions.ts';
import type { TopicPart } from './topics.ts';

/** Events that are read, and those in an answer. */
const MOST_READ = 1000;
const MOST_STATED = 15;

/** Events of conversations, and steps of work whose end is an event too. */
const NO_NEWS =
  /^(?:chat\.(?:turn|tool)_|agent\.|run\.(?!ended)|bot\.activated|data\.|order\.|session\.|venue\.)/;

/** Runs whose figures are stated. */
const MOST_RUNS = 5;

async function news(facts: Facts): Promise<Reply> {
  const { data } = await eventsOf(facts, [], MOST_READ);
  const report = data.items.findLast(
    ({ kind, payload }) => kind === 'agent.reported' && payload['role'] === facts.role,
  );
  // The agent may have missed events that were recorded while it answered.
  const seen = data.items.find(
    ({ kind, payload }) =>
      kind === 'chat.turn_started' && payload['turn_id'] === report?.payload['turn_id'],
  );
  // The question itself is the last event.
  const now = Date.parse(data.items.at(-1)?.recorded_at ?? '');
  const isNew =
    report === undefined
      ? ({ recorded_at }: Event): boolean => Date.parse(recorded_at) > now - DAY
      : ({ seq }: Event): boolean => seq > (seen ?? report).seq;
  const since =
    report === undefined
      ? 'in the last day'
      : `since the last report of this agent (event ${report.seq}, ${report.recorded_at})`;
  const found = data.items.filter((event) => isNew(event) && !NO_NEWS.test(event.kind));
  const base = report === undefined ? [] : citeEvent(facts.bot, report, '/recorded_at');
  if (found.length === 0) {
    const text = `Nothing has changed ${since}: no version, no run that ended, no proposal, no alert and no halt.`;
    return reply(text, cite(await botOf(facts), '/current_version'), base);
  }
  const shown = found.slice(-MOST_STATED);
  const runs = new Set(shown.filter(({ kind }) => kind === 'run.ended').slice(-MOST_RUNS));
  const lines = await Promise.all(
    shown.map(async (event) => {
      if (event.kind === 'version.created') return stateNewVersion(facts, event);
      if (event.kind === 'chat.proposal') return stateNewProposal(facts, event);
      return runs.has(event) ? stateNewRun(facts, event) : stateEvent(event);
    }),
  );
  const most = found.length > shown.length ? ', the last of which are' : '';
  return reply(
    [`${formatCountOf(found.length, 'thing')} changed ${since}${most}:`, ...lines],
    shown.map((event) => citeEvent(facts.bot, event)),
    base,
  );
}

/** Changes that are stated of one version or proposal. */
const MOST_CHANGES = 5;

async function stateNewVersion(facts: Facts, { seq, version }: Event): Promise<string> {
  const from = Number(version) - 1;
  const made = `- ${seq}: version ${version} was made`;
  if (from < 1) return made;
  const path = withQuery(at`/bots/${facts.bot}/versions/${from}/diff`, { to: from + 1 });
  const { changes } = (await facts.get<{ readonly changes: readonly Change[] }>(path)).data;
  return `${made}${joinChanges(changes)}`;
}

async function stateNewProposal(facts: Facts, { seq, payload }: Event): Promise<string> {
  const { slug } = (await botOf(facts)).data;
  const changes = (payload['changes'] ?? []) as readonly Change[];
  const command = `service-local bots update ${slug} --proposal ${String(payload['proposal_id'])}`;
  return `- ${seq}: proposed, ${quoted(payload['rationale'])}${joinChanges(changes)} (\`${command}\` applies it)`;
}

function joinChanges(changes: readonly Change[]): string {
  const said = changes.slice(0, MOST_CHANGES).map((change) => stateVersionChange(change).slice(2));
  const more = changes.length - said.length;
  const all = [...said, ...(more > 0 ? [`${more} more`] : [])];
  return all.length === 0 ? '' : `: ${all.join('; ')}`;
}

/** States the figures of a run that has some. */
async function stateNewRun(facts: Facts, event: Event): Promise<string> {
  const { seq, run_id, payload } = event;
  if (run_id === null || payload['status'] !== 'success') return stateEvent(event);
  try {
    const run = await runNamed(facts, run_id);
    const figures = SHORT_HEADLINES.map((figure) => stateFigure(run, figure));
    return `- ${seq}: ${run.said}: ${figures.join(', ')}`;
  } catch (error) {
    // Other tasks have no such figures.
    if (error instanceof ServiceError) return stateEvent(event);
    throw error;
  }
}

export const NEWS_TOPICS: TopicPart = {
  title: 'What is new',
  topics: [
    {
      id: 'news',
      example: 'What has changed?',
      about:
        'versions, runs, proposals, alerts and halts since the last report of the agent, or of the last day',
      keys: [
        'what changed|change',
        'anything|something changed|new',
        'new since|today|lately',
        'news',
      ],
      answer: news,
    },
  ],
};
