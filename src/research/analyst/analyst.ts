/**
 * Answers questions about a bot from its own facts, where no language model is set up. It knows the
 * questions of `QUESTIONS`, and nothing else.
 */
import { closest } from '../../closest.ts';
import type { Ask } from '../ask.ts';
import type { Citation } from '../answering.ts';
import { QUESTIONS } from './questions.ts';

export interface AnalystAnswer {
  readonly answer: string;
  readonly citations: readonly Citation[];
  /** Questions that it can answer, where it could not answer this one. */
  readonly suggestions?: readonly string[];
}

/** @param bot its id, or its slug. @throws ServiceError where the API refuses. */
export async function answerQuestion(
  ask: Ask,
  bot: string,
  prompt: string,
  signal: AbortSignal,
): Promise<AnalystAnswer> {
  const plain = prompt
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]+/gu, ' ')
    .trim();
  const question = QUESTIONS.find(({ pattern }) => pattern.test(plain));
  if (question !== undefined) return question.answer(ask, bot, signal);
  const known = QUESTIONS.map(({ example }) => example);
  const near = closest(plain, known);
  const suggestions = [...new Set([...(near === undefined ? [] : [near]), ...known])].slice(0, 5);
  const answer = `I am no language model, and do not know how to answer that. I can answer, for example:\n${suggestions.map((one) => `- ${one}`).join('\n')}`;
  return { answer, citations: [], suggestions };
}
