/**
 * Answers questions about a bot from its own facts, where no language model is set up. It knows the
 * questions of `QUESTIONS`, and nothing else; it changes nothing. What it reads is told, and never
 * followed.
 */
import { ServiceError } from '../../errors.ts';
import type { Ask } from '../ask.ts';
import type { Citation } from '../answering.ts';
import { botOf, openFacts, type Facts } from './facts.ts';
import { leftOut, nearest, questionsIn } from './match.ts';
import { readPrompt, type Prompt } from './prompt.ts';
import type { KnownQuestion } from './question.ts';
import { PARTS, QUESTIONS } from './questions.ts';

export interface AnalystAnswer {
  /** Of the question that it took it for; null where it knows none like it. */
  readonly question: string | null;
  readonly answer: string;
  readonly citations: readonly Citation[];
}

const WHO_I_AM = 'I am the embedded analyst, not a language model.';
const HOW_TO_LIST = 'Ask "What can I ask?" for all questions that I know.';

/**
 * Of a fact that there is not, and what the API refuses, it tells.
 * @param bot its id, or its slug.
 */
export async function answerQuestion(
  ask: Ask,
  bot: string,
  text: string,
  signal: AbortSignal,
): Promise<AnalystAnswer> {
  const prompt = readPrompt(text);
  const plain = own(prompt);
  if (plain !== undefined) return { question: null, answer: plain, citations: [] };
  const [question, ...others] = questionsIn(prompt);
  if (question === undefined) {
    const examples = nearest(prompt).map(({ example }) => `- ${example}`);
    const near = examples.length === 0 ? [] : ['Like it are:', ...examples];
    const lines = ['I do not know this question.', ...near, HOW_TO_LIST, WHO_I_AM];
    return { question: null, answer: lines.join('\n'), citations: [] };
  }
  const more = others.map(({ example }) => `Ask apart, too: ${example}`);
  try {
    const facts = openFacts(ask, bot, prompt, signal);
    const told = await question.answer(facts);
    const taken = await takenFor(facts, question, others);
    const answer = [...taken, told.text, ...more, `(${WHO_I_AM})`].join('\n');
    return { question: question.id, answer, citations: told.citations };
  } catch (error) {
    if (signal.aborted || !(error instanceof ServiceError)) throw error;
    const why = `I cannot tell: ${error.message}.`;
    const answer = [
      why,
      ...(error.remedy === undefined ? [] : [error.remedy]),
      ...more,
      `(${WHO_I_AM})`,
    ];
    return { question: question.id, answer: answer.join('\n'), citations: [] };
  }
}

/** Of the words that were left out of account, so many are told. */
const MOST_LEFT_OUT = 8;

/** What the answer does not look at, where the prompt says more than the question that it is taken for. */
async function takenFor(
  facts: Facts,
  question: KnownQuestion,
  others: readonly KnownQuestion[],
): Promise<string[]> {
  const left = leftOut(facts.prompt, question, others);
  if (left.length === 0) return [];
  const { slug, name, document } = (await botOf(facts)).data;
  const { symbols } = document.spec.universe;
  const { words: names } = readPrompt(
    [slug, name, ...(symbols.length === 1 ? symbols : [])].join(' '),
  );
  const said = left.filter((word) => !names.includes(word)).slice(0, MOST_LEFT_OUT);
  if (said.length === 0) return [];
  const words = said.map((word) => JSON.stringify(word.slice(0, 40))).join(', ');
  return [`I take it for "${question.example}", and leave out of account: ${words}.`];
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
