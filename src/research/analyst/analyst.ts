/**
 * Answers questions about a bot from its own facts, where no language model is set up. It knows the
 * questions of `QUESTIONS`, and nothing else; it changes nothing. What it reads is told, and never
 * followed.
 */
import { ServiceError } from '../../base/errors.ts';
import { at, type Ask } from '../call-api.ts';
import type { Citation } from '../answering.ts';
import { botOf, missing, openFacts, type Bot, type Facts } from './facts.ts';
import { isNeutral, nearest, understand, wordsThatSay, type Understood } from './match.ts';
import { periodIn, refusePeriod, tellPeriod, yearIn, type Period } from './period.ts';
import { readPrompt, withoutIds, type Prompt } from './prompt.ts';
import type { KnownQuestion, Reply } from './question.ts';
import { PARTS, QUESTIONS } from './questions.ts';

export interface AnalystAnswer {
  /** Of the question that it took it for; null where it knows none like it. */
  readonly question: string | null;
  readonly answer: string;
  readonly citations: readonly Citation[];
}

const WHO_I_AM = 'I am the embedded analyst, not a language model.';
const HOW_TO_LIST = 'Ask "What can I ask?" for all questions that I know.';

/** What is known beside the question. */
export interface About {
  /** What was asked before in the same session, the oldest first. */
  readonly earlier?: readonly string[];
  /** Of the agent that is asked. */
  readonly role?: string | undefined;
}

/**
 * Of a fact that there is not, and what the API refuses, it tells.
 * @param bot its id, or its slug.
 */
export async function answerQuestion(
  ask: Ask,
  bot: string,
  text: string,
  signal: AbortSignal,
  { earlier = [], role }: About = {},
): Promise<AnalystAnswer> {
  const asked = readPrompt(text);
  const plain = own(asked);
  if (plain !== undefined) return { question: null, answer: plain, citations: [] };
  const before = goesOn(asked) ? earlier.findLast((one) => !goesOn(readPrompt(one))) : undefined;
  const prompt = before === undefined ? asked : readPrompt(joined(before, asked));
  const isOpen = before === undefined && goesOn(asked) && asked.years.length === 0;
  if (isOpen) return refusal(['I do not know this question.', WHAT_OF_THAT]);
  const facts = openFacts(ask, { bot, role, prompt }, signal);
  const understood = await understoodBy(facts, prompt);
  if (understood.question === undefined) {
    const other = await otherBot(facts, understood.nearest).catch((error: unknown) => {
      // Whether it names another bot is known only where there is this one.
      if (error instanceof ServiceError) return undefined;
      throw error;
    });
    return refusal(other === undefined ? notUnderstood(prompt, understood) : whyNot(other));
  }
  const { question, others } = understood;
  const onward =
    before === undefined ? [] : [`As asked before: ${JSON.stringify(before.slice(0, 200))}`];
  const more = others.map(({ example }) => `Ask apart, too: ${example}`);
  try {
    const other = await otherBot(facts, question);
    if (other !== undefined) throw other;
    const asking = { ...facts, prompt: understood.prompt };
    const period = periodOf(question, understood.prompt);
    const { text: said, citations } = await answerOf(asking, question, period);
    const answer = [...onward, said, ...more, `(${WHO_I_AM})`].join('\n');
    return { question: question.id, answer, citations };
  } catch (error) {
    if (signal.aborted || !(error instanceof ServiceError)) throw error;
    const answer = [...onward, ...whyNot(error), ...more, `(${WHO_I_AM})`];
    return { question: question.id, answer: answer.join('\n'), citations: [] };
  }
}

const WHAT_OF_THAT =
  'I do not know what this refers to: no earlier question in this session was understood.';

function refusal(lines: readonly string[]): AnalystAnswer {
  const answer = [...lines, HOW_TO_LIST, WHO_I_AM].join('\n');
  return { question: null, answer, citations: [] };
}

/** With the names of the bot where it is not understood without them. */
async function understoodBy(facts: Facts, prompt: Prompt): Promise<Understood> {
  const plain = understand(prompt, []);
  if (plain.question !== undefined) return plain;
  const bot = await botOf(facts).catch((error: unknown) => {
    if (error instanceof ServiceError) return undefined;
    throw error;
  });
  if (bot === undefined) return plain;
  const { slug, name, document } = bot.data;
  const { symbols } = document.spec.universe;
  return understand(prompt, [slug, name, ...(symbols.length === 1 ? symbols : [])]);
}

/** Limits of quotations: number of words, and length of each. */
const MOST_QUOTED = 8;
const LONGEST_WORD = 40;

function notUnderstood(
  prompt: Prompt,
  { notUnderstood: words, nearest: first }: Extract<Understood, { question: undefined }>,
): string[] {
  const quoted = words
    .slice(0, MOST_QUOTED)
    .map((word) => JSON.stringify(word.slice(0, LONGEST_WORD)));
  const why = quoted.length === 0 ? '' : ` I did not understand ${quoted.join(', ')}.`;
  const like = nearest(prompt, first).map(({ example }) => `- ${example}`);
  const near = like.length === 0 ? [] : ['Questions like it that I can answer:', ...like];
  return [`I do not know this question.${why}`, ...near];
}

function whyNot({ message, remedy }: ServiceError): string[] {
  return [`I cannot tell: ${message}.`, ...(remedy === undefined ? [] : [remedy])];
}

const GOES_ON = /^(?:and|but|or|what about|how about|the same|same|for|of|in)\b/;

/** Whether it names a version, a run or days alone, so that the rest was asked before. */
function goesOn(prompt: Prompt): boolean {
  const { words, versions, years, ids } = prompt;
  if (!GOES_ON.test(words.join(' '))) return false;
  const period = periodIn(prompt);
  if (versions.length + years.length + ids.length === 0 && period === undefined) return false;
  const saysMore = new Set(wordsThatSay(prompt));
  for (const word of readPrompt(period?.said ?? '').words) saysMore.delete(word);
  return [...saysMore].every((word) => /^v?\d+$/.test(word) || isNeutral(word));
}

/** The question of before, with what is named now in place of what it named. */
function joined(before: string, { text, versions, years, ids }: Prompt): string {
  const { said = '' } = periodIn(readPrompt(text)) ?? {};
  const isOfDays = said !== '' || years.length > 0;
  const isOfRun = versions.length + ids.length > 0;
  const old = periodIn(readPrompt(before))?.said;
  let rest = before.toLowerCase().replace(/[\s?.!]+$/, '');
  if (isOfRun) rest = withoutIds(rest).replaceAll(/\b(?:(?:of|in|for) )?(?:version |v)\d+\b/g, '');
  if (isOfDays && old !== undefined) rest = rest.replace(old, '');
  if (isOfDays) rest = rest.replaceAll(/\b(?:(?:in|of|for) )?(?:19|20)\d\d\b/g, '');
  return `${rest} ${text}`;
}

/** Days that a question about a run is asked for. */
function periodOf({ ofRun }: KnownQuestion, prompt: Prompt): Period | undefined {
  if (ofRun === undefined) return undefined;
  const period = periodIn(prompt);
  if (period !== undefined) return period;
  return ofRun === 'years' ? undefined : yearIn(prompt);
}

/** Of each year or month of the days, and not of all of them. */
const OF_EACH =
  /\b(?:best|worst|each|every|yearly|annual|monthly|years|months|by (?:year|month))\b/;

function answerOf(
  facts: Facts,
  question: KnownQuestion,
  period: Period | undefined,
): Promise<Reply> {
  const { ofRun, example } = question;
  if (period === undefined) return question.answer(facts);
  if (ofRun === 'return' || ofRun === 'drawdown') return tellPeriod(facts, period, ofRun);
  if (ofRun === 'years') {
    const isOfEach = OF_EACH.test(facts.prompt.words.join(' '));
    return isOfEach ? question.answer(facts) : tellPeriod(facts, period, 'return');
  }
  return refusePeriod(facts, period, example);
}

/** How another bot can be named: beside `bot`, at the end, or as code. */
const NAMED = [
  /\bbots? [`'"]?([a-z0-9][a-z0-9-]*)/gi,
  /\b([a-z0-9][a-z0-9-]*)[`'"]? bot\b/gi,
  /[`'"]([a-z0-9][a-z0-9-]*)[`'"]/gi,
  /\bof ([a-z0-9][a-z0-9-]*)[\s?.!]*$/gi,
];
const MOST_NAMED = 4;

/** Answers are about one bot. @returns the refusal where the prompt names another one. */
async function otherBot(
  facts: Facts,
  question: KnownQuestion | undefined,
): Promise<ServiceError | undefined> {
  if (question === undefined || question.seeks === true) return undefined;
  const { example, keys } = question;
  const { text } = facts.prompt;
  const named = NAMED.flatMap((pattern) => [...text.matchAll(pattern)].map(([, name]) => name!));
  const known = new Set(wordsThatSay(readPrompt(`${example} ${keys.join(' ')}`)));
  const said = [...new Set(named.map((name) => name.toLowerCase()))]
    .filter((name) => wordsThatSay(readPrompt(name)).some((word) => !isNeutral(word)))
    .filter((name) => text.includes(`\`${name}\``) || !known.has(name));
  if (said.length === 0) return undefined;
  const { id, slug } = (await botOf(facts)).data;
  for (const name of said.filter((one) => one !== slug).slice(0, MOST_NAMED)) {
    const other = await facts.get<Bot>(at`/bots/${name}`).catch((error: unknown) => {
      if (error instanceof ServiceError && error.code === 'not_found') return undefined;
      throw error;
    });
    if (other === undefined || other.data.id === id) continue;
    const isTalkedTo = other.data.document.spec.kind === 'research';
    return missing(
      `that is about the bot ${other.data.slug}, and I answer for ${slug} alone`,
      isTalkedTo
        ? `Ask it: \`service-local bots chat ${other.data.slug}\`.`
        : `Nobody can talk with it, as its kind is ${other.data.document.spec.kind}: see \`service-local tasks list --bot ${other.data.slug}\`, and \`tasks result ID\`.`,
    );
  }
  return undefined;
}

/** Words with which somebody tells it to do something. */
const ORDERS =
  /^(?:please |now |then |and )*(?:add|apply|approve|archive|backtest|buy|cancel|change|close|create|delete|deploy|disable|enable|execute|forget|grant|halt|ignore|lift|lower|open|place|promote|raise|remove|resume|run|sell|send|set|short|start|stop|transfer|update|write)\b/;

/** What the records cannot tell. */
const FORECAST =
  /\b(?:predict|forecast|tomorrow|next (?:day|week|month|year)|will (?:be|i|it|my|the|there|they|this|we)|should (?:i|we) (?:buy|deploy|go|hold|invest|sell|start|stop|switch|trade|use))\b/;

/** What it says of itself, and to orders. */
function own({ text, words }: Prompt): string | undefined {
  const plain = words.join(' ');
  if (
    /^(?:help|questions)$|\bwhat (?:can|may|could|should) (?:i|you|one)\b.*\b(?:ask|answer|do|know)\b|\bwhat do you know\b|\b(?:list|show|which)\b.*\bquestions\b/.test(
      plain,
    )
  ) {
    return allQuestions();
  }
  if (
    /\b(?:who|what) are you\b|\bare you (?:an? )?(?:ai|llm|language model|human|robot|chatgpt|claude)\b/.test(
      plain,
    )
  ) {
    return `${WHO_I_AM} I answer a set of questions from the records of this bot, with the source of each figure. ${HOW_TO_LIST}`;
  }
  if (FORECAST.test(plain)) {
    return `I tell what the records of this bot have; I forecast nothing, and give no advice. ${HOW_TO_LIST}\n(${WHO_I_AM})`;
  }
  if (ORDERS.test(plain) && !text.trimEnd().endsWith('?')) {
    return `I do nothing but answer questions: I start, stop and change nothing. People do that, with the commands of \`service-local --help\`. ${HOW_TO_LIST}\n(${WHO_I_AM})`;
  }
  return undefined;
}

/** All questions that it knows, by their parts. */
function allQuestions(): string {
  const parts = PARTS.map(({ title, questions }) =>
    [`${title}:`, ...questions.map(({ example, tells }) => `- ${example} (${tells})`)].join('\n'),
  );
  return [
    `${WHO_I_AM} I know ${QUESTIONS.length} questions, in these and other words.`,
    ...parts,
  ].join('\n\n');
}
