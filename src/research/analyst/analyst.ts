/**
 * Answers questions about a bot from its own records, without a language model. Questions about results
 * become typed queries (`parse-question.ts`), and questions about other records match a topic (`topics.ts`).
 * Each word of a question must be used; every other question is refused.
 */
import { ServiceError } from '../../base/errors.ts';
import type { Citation } from '../answering.ts';
import { at, type Ask } from '../call-api.ts';
import { answerClock } from './answer-clock.ts';
import { answerFigure } from './answer-figure.ts';
import { answerItems } from './answer-items.ts';
import { EXAMPLES } from './examples.ts';
import { botOf, missing, openFacts, type Bot, type Facts } from './facts.ts';
import { NEWS_TOPICS } from './news.ts';
import { parseQuestion, type Context, type Names, type Parsed } from './parse-question.ts';
import type { Query } from './query.ts';
import type { Reply } from './reply.ts';
import { RESULT_TOPICS } from './topics-result.ts';
import { SPEC_TOPICS } from './topics-spec.ts';
import { STATE_TOPICS } from './topics-state.ts';
import { compareRuns, VERSION_TOPICS } from './topics-versions.ts';
import { matchTopic, nearestQuestions, type Topic } from './topics.ts';
import { answerWhatIf } from './what-if.ts';
import { splitWords } from './words.ts';

export interface AnalystAnswer {
  /** Id of the topic or kind of the query; null for a refused question. */
  readonly question: string | null;
  readonly answer: string;
  readonly citations: readonly Citation[];
}

const PARTS = [RESULT_TOPICS, VERSION_TOPICS, NEWS_TOPICS, STATE_TOPICS, SPEC_TOPICS];
const TOPICS = PARTS.flatMap(({ topics }) => topics);
const WHO_I_AM = 'I am the embedded analyst, not a language model.';
const HOW_TO_LIST = 'Ask "What can I ask?" for examples of all questions.';

export interface About {
  /** Earlier questions of the same session, the oldest first. */
  readonly earlier?: readonly string[];
  /** Role of the agent that is asked. */
  readonly role?: string | undefined;
}

/**
 * Answers a question, or refuses it with the nearest questions.
 * @param bot its id or slug.
 */
export async function answerQuestion(
  ask: Ask,
  bot: string,
  text: string,
  signal: AbortSignal,
  { earlier = [], role }: About = {},
): Promise<AnalystAnswer> {
  const isAboutQuestions = asksForQuestions(text);
  const own = isAboutQuestions ? undefined : answerOwn(text);
  if (own !== undefined) return withoutRecords(own);
  const facts = openFacts(ask, { bot, role, text }, signal);
  const found = await botOf(facts).catch((error: unknown) => {
    if (error instanceof ServiceError) return undefined;
    throw error;
  });
  if (isAboutQuestions) return withoutRecords(listQuestions(found?.data));
  const names = namesOf(found?.data);
  const parsed = parseQuestion(text, names, contextOf(earlier, names));
  if (parsed.queries !== undefined) return answerQueries(facts, parsed, earlier);
  const matched = matchTopic(text, TOPICS, names.bot.concat(names.symbols));
  if (matched.topic === undefined)
    return refuse(await whyNot(facts, found?.data, parsed, matched.unknown));
  const { topic, versions, ids } = matched;
  const other = topic.isSearch ? undefined : await otherBot(facts, found?.data, topic);
  if (other !== undefined) return refuse(reasonOf(other));
  return answerWith(topic.id, [], signal, async () => topic.answer({ ...facts, versions, ids }));
}

function namesOf(bot: Bot | undefined): Names {
  if (bot === undefined) return { bot: [], symbols: [], params: ['fast', 'slow'] };
  const { slug, name, document } = bot;
  const { universe, strategy } = document.spec;
  return {
    bot: [slug, name],
    symbols: universe.symbols,
    params: Object.keys(strategy?.params ?? {}),
  };
}

/** The last question of the session; `unclear` if it was not understood as a query. */
function contextOf(earlier: readonly string[], names: Names): Context | 'unclear' | undefined {
  let context: Context | 'unclear' | undefined;
  for (const text of earlier.slice(-MOST_EARLIER)) {
    const parsed = parseQuestion(text, names, context);
    context = parsed.queries === undefined ? 'unclear' : parsed.context;
  }
  return context;
}

const MOST_EARLIER = 20;

type Understood = Extract<Parsed, { queries: readonly Query[] }>;

async function answerQueries(
  facts: Facts,
  { queries, corrected, isFollowUp, context }: Understood,
  earlier: readonly string[],
): Promise<AnalystAnswer> {
  const notes = [
    ...corrected.map(
      ([word, meant]) => `Read ${JSON.stringify(word)} as ${JSON.stringify(meant)}.`,
    ),
    ...(isFollowUp ? [`As a follow-up to ${JSON.stringify(earlier.at(-1)!.slice(0, 200))}.`] : []),
  ];
  const asking = { ...facts, ids: context.ids };
  return answerWith(queries[0]!.kind, notes, facts.signal, async () => {
    const replies: Reply[] = [];
    for (const query of queries) replies.push(await answerQuery(asking, query));
    return {
      text: replies.map(({ text }) => text).join('\n'),
      citations: replies.flatMap(({ citations }) => citations),
    };
  });
}

function answerQuery(facts: Facts, query: Query): Promise<Reply> {
  if (query.kind === 'figure') return answerFigure(facts, query);
  if (query.kind === 'items') return answerItems(facts, query);
  if (query.kind === 'clock') return answerClock(facts, query);
  if (query.kind === 'compare') return compareRuns(facts, query.versions);
  return answerWhatIf(facts, query);
}

async function answerWith(
  question: string,
  notes: readonly string[],
  signal: AbortSignal,
  answer: () => Promise<Reply>,
): Promise<AnalystAnswer> {
  try {
    const { text, citations } = await answer();
    return { question, answer: [text, ...notes, `(${WHO_I_AM})`].join('\n'), citations };
  } catch (error) {
    if (signal.aborted || !(error instanceof ServiceError)) throw error;
    return {
      question,
      answer: [...reasonOf(error), ...notes, `(${WHO_I_AM})`].join('\n'),
      citations: [],
    };
  }
}

const reasonOf = ({ message, remedy }: ServiceError): string[] => [
  `I cannot answer this: ${message}.`,
  ...(remedy === undefined ? [] : [remedy]),
];

function refuse(lines: readonly string[]): AnalystAnswer {
  return withoutRecords([...lines, HOW_TO_LIST, WHO_I_AM].join('\n'));
}

const withoutRecords = (answer: string): AnalystAnswer => ({
  question: null,
  answer,
  citations: [],
});

const MOST_QUOTED = 8;
const LONGEST_WORD = 40;

async function whyNot(
  facts: Facts,
  bot: Bot | undefined,
  parsed: Exclude<Parsed, Understood>,
  left: readonly string[] | undefined,
): Promise<string[]> {
  const other = await otherBot(facts, bot, undefined);
  if (other !== undefined) return reasonOf(other);
  if (parsed.needsContext) {
    return [
      'I do not know this question. No earlier question of this session that I understood says what it refers to.',
    ];
  }
  const words = left !== undefined && left.length < parsed.unknown.length ? left : parsed.unknown;
  const quoted = words
    .slice(0, MOST_QUOTED)
    .map((word) => JSON.stringify(word.slice(0, LONGEST_WORD)));
  const why = quoted.length === 0 ? '' : ` I did not understand ${quoted.join(', ')}.`;
  const near = nearestQuestions(facts.text, exampleQuestions(bot)).map((example) => `- ${example}`);
  const like = near.length === 0 ? [] : ['Questions like it that I can answer:', ...near];
  return [`I do not know this question.${why}`, ...like];
}

function exampleQuestions(bot: Bot | undefined): readonly string[] {
  return [
    ...examplesFor(bot).flatMap(({ questions }) => questions),
    ...TOPICS.map(({ example }) => example),
  ];
}

/** Examples of questions that can be asked about the bot. */
function examplesFor(bot: Bot | undefined): typeof EXAMPLES {
  const isTrading = bot?.document.spec.kind === 'trading';
  return EXAMPLES.filter(({ needsRun = false }) => !(needsRun && isTrading));
}

/** How a question can name another bot: beside `bot`, as code, or at its end. */
const NAMED = [
  /\bbots? [`'"]?([a-z0-9][a-z0-9-]*)/gi,
  /\b([a-z0-9][a-z0-9-]*)[`'"]? bot\b/gi,
  /[`'"]([a-z0-9][a-z0-9-]*)[`'"]/gi,
  /\bof ([a-z0-9][a-z0-9-]*)[\s?.!]*$/gi,
];
const MOST_NAMED = 4;

/** The refusal of a question that names another bot, because answers are about one bot. */
async function otherBot(
  facts: Facts,
  bot: Bot | undefined,
  topic: Topic | undefined,
): Promise<ServiceError | undefined> {
  const own = new Set(splitWords(`${topic?.example ?? ''} ${topic?.keys.join(' ') ?? ''}`).words);
  const named = NAMED.flatMap((pattern) =>
    [...facts.text.matchAll(pattern)].map(([, name]) => name!.toLowerCase()),
  );
  const others = [...new Set(named)].filter(
    (name) => bot !== undefined && name !== bot.slug && !own.has(name),
  );
  for (const name of others.slice(0, MOST_NAMED)) {
    const other = await facts.get<Bot>(at`/bots/${name}`).catch((error: unknown) => {
      if (error instanceof ServiceError && error.code === 'not_found') return undefined;
      throw error;
    });
    if (other === undefined || other.data.id === bot!.id) continue;
    const { slug } = other.data;
    return missing(
      `the question is about the bot ${slug}, and I answer for ${bot!.slug} only`,
      `Ask that bot: \`service-local bots chat ${slug}\`.`,
    );
  }
  return undefined;
}

/** Beginnings of commands. */
const ORDERS =
  /^(?:please |now |then |and )*(?:add|apply|approve|archive|backtest|buy|cancel|change|close|create|delete|deploy|disable|enable|execute|forget|grant|halt|ignore|lift|lower|open|place|promote|raise|remove|resume|run|sell|send|set|short|start|stop|transfer|update|write)\b/;
const COMMAND = /\b(?:now|please|bot|bots|order|orders|it|them|position|positions|spx)\b/;

/** Questions about the future, and requests for advice. */
const FORECAST =
  /\b(?:predict|forecast|tomorrow|next (?:day|week|month|year)|will (?:be|i|it|my|the|there|they|this|we)|should (?:i|we) (?:buy|deploy|go|hold|invest|sell|start|stop|switch|trade|use))\b/;

const plainWords = (text: string): string =>
  splitWords(text)
    .words.filter((word) => /[\p{L}\p{N}]/u.test(word))
    .join(' ');

const asksForQuestions = (text: string): boolean =>
  /^(?:help|questions)$|\bwhat (?:can|may|could|should) (?:i|you|one)\b.*\b(?:ask|answer|do|know)\b|\bwhat do you know\b|\b(?:list|show|which)\b.*\bquestions\b/.test(
    plainWords(text),
  );

/** Answers questions about the analyst itself, which need no records. */
function answerOwn(text: string): string | undefined {
  const plain = plainWords(text);
  if (
    /\b(?:who|what) are you\b|\bare you (?:an? )?(?:ai|llm|language model|human|robot|chatgpt|claude)\b/.test(
      plain,
    )
  ) {
    return `${WHO_I_AM} I answer from the records of this bot, with the source of each figure. ${HOW_TO_LIST}`;
  }
  if (FORECAST.test(plain)) {
    return `I report the records of this bot; I give no forecasts and no advice. ${HOW_TO_LIST}\n(${WHO_I_AM})`;
  }
  if (ORDERS.test(plain) && COMMAND.test(plain) && !text.trimEnd().endsWith('?')) {
    return `I only answer questions, and do not change the bot: people do that with the commands of \`service-local --help\`. ${HOW_TO_LIST}\n(${WHO_I_AM})`;
  }
  return undefined;
}

function listQuestions(bot: Bot | undefined): string {
  const results = examplesFor(bot).map(({ title, questions }) =>
    [`${title}:`, ...questions.map((example) => `- ${example}`)].join('\n'),
  );
  const records = PARTS.map(({ title, topics }) =>
    [`${title}:`, ...topics.map(({ example, about }) => `- ${example} (${about})`)].join('\n'),
  );
  return [
    `${WHO_I_AM} I answer questions like these, in these and other words.`,
    ...results,
    ...records,
  ].join('\n\n');
}
