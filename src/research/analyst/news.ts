import { DAY } from '../../base/durations.ts';
import { ServiceError } from '../../base/errors.ts';
import { formatCountOf } from '../../base/format.ts';
import { at, withQuery } from '../call-api.ts';
import { sayEvent } from './control.ts';
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
import { reply, type Questions, type Reply } from './question.ts';
import { HEADLINES, sayFigure } from './results.ts';
import { sayChange, type Change } from './versions.ts';

/** So many events are looked at, the last ones. */
const MOST_LOOKED_AT = 1000;
const MOST_TOLD = 15;

/** Conversations, and steps of what is told by its end. */
const NO_NEWS =
  /^(?:chat\.(?:turn|tool)_|agent\.|run\.(?!ended)|bot\.activated|data\.|order\.|session\.|venue\.)/;

/** Runs with results are told by what they made. */
const MOST_RUNS = 5;

async function news(facts: Facts): Promise<Reply> {
  const { data } = await eventsOf(facts, [], MOST_LOOKED_AT);
  const report = data.items.findLast(
    ({ kind, payload }) => kind === 'agent.reported' && payload['role'] === facts.role,
  );
  // What came while it was answering, it may not have seen.
  const seen = data.items.find(
    ({ kind, payload }) =>
      kind === 'chat.turn_started' && payload['turn_id'] === report?.payload['turn_id'],
  );
  // What asks this is an event itself.
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
  const shown = found.slice(-MOST_TOLD);
  const runs = new Set(shown.filter(({ kind }) => kind === 'run.ended').slice(-MOST_RUNS));
  const lines = await Promise.all(
    shown.map(async (event) => {
      if (event.kind === 'version.created') return sayVersion(facts, event);
      if (event.kind === 'chat.proposal') return sayProposal(facts, event);
      return runs.has(event) ? sayRun(facts, event) : sayEvent(event);
    }),
  );
  const most = found.length > shown.length ? ', the last of which are' : '';
  return reply(
    [`${formatCountOf(found.length, 'thing')} changed ${since}${most}:`, ...lines],
    shown.map((event) => citeEvent(facts.bot, event)),
    base,
  );
}

/** Of what differs from the version before, so much. */
const MOST_CHANGES = 5;

async function sayVersion(facts: Facts, { seq, version }: Event): Promise<string> {
  const from = Number(version) - 1;
  const made = `- ${seq}: version ${version} was made`;
  if (from < 1) return made;
  const path = withQuery(at`/bots/${facts.bot}/versions/${from}/diff`, { to: from + 1 });
  const { changes } = (await facts.get<{ readonly changes: readonly Change[] }>(path)).data;
  return `${made}${sayChanges(changes)}`;
}

async function sayProposal(facts: Facts, { seq, payload }: Event): Promise<string> {
  const { slug } = (await botOf(facts)).data;
  const changes = (payload['changes'] ?? []) as readonly Change[];
  const command = `service-local bots update ${slug} --proposal ${String(payload['proposal_id'])}`;
  return `- ${seq}: proposed, ${quoted(payload['rationale'])}${sayChanges(changes)} (\`${command}\` applies it)`;
}

function sayChanges(changes: readonly Change[]): string {
  const said = changes.slice(0, MOST_CHANGES).map((change) => sayChange(change).slice(2));
  const more = changes.length - said.length;
  const all = [...said, ...(more > 0 ? [`${more} more`] : [])];
  return all.length === 0 ? '' : `: ${all.join('; ')}`;
}

/** With its figures, where it has some. */
async function sayRun(facts: Facts, event: Event): Promise<string> {
  const { seq, run_id, payload } = event;
  if (run_id === null || payload['status'] !== 'success') return sayEvent(event);
  try {
    const run = await runNamed(facts, run_id);
    const figures = HEADLINES.slice(0, 5).map((figure) => sayFigure(run, figure));
    return `- ${seq}: ${run.said}: ${figures.join(', ')}`;
  } catch (error) {
    // Of other work there are no such figures.
    if (error instanceof ServiceError) return sayEvent(event);
    throw error;
  }
}

export const NEWS: Questions = {
  title: 'What is new',
  questions: [
    {
      id: 'news',
      example: 'What has changed?',
      tells:
        'versions, runs, proposals, alerts and halts, since the last report of the agent that is asked, else of the last day',
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
