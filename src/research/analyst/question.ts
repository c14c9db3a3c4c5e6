import type { Citation } from '../answering.ts';
import type { Facts } from './facts.ts';

/** What is worked out of part of a run; other figures are of whole ones. */
export type OfPeriod = 'return' | 'drawdown';

/** A question that the analyst knows, and how it is answered. */
export interface KnownQuestion {
  readonly id: string;
  /** As a person would ask it. */
  readonly example: string;
  /** What the answer has, for people who look for a question. */
  readonly tells: string;
  /**
   * Other ways to ask it: the words that a prompt must have, in any order. `a|b` is one or the other,
   * `#year` a year, `#version` one as `v2`, `#ordinal` a place as `second`; a word stands for its plural and such, too. Of several the key with most words counts.
   */
  readonly keys: readonly string[];
  /** Whether it looks for what the prompt says. */
  readonly seeks?: true;
  /** Whether it is about a run; `return` and `drawdown` are known of part of one, too. */
  readonly ofRun?: 'whole' | 'years' | OfPeriod;
  /** Whether it uses a rank in the prompt, such as `second`, or also a number of items. */
  readonly counts?: 'place' | 'many';
  /** Number of versions that it uses; by default 1 for a question about a run, else 0. */
  readonly versioned?: number;
  /** @throws ServiceError for what there is not, and what the API refuses. */
  readonly answer: (facts: Facts) => Promise<Reply>;
}

/** An answer: all its figures are in the citations as the API gives them, too. */
export interface Reply {
  readonly text: string;
  readonly citations: readonly Citation[];
}

export function reply(
  text: string | readonly string[],
  ...citations: readonly (Citation | readonly Citation[])[]
): Reply {
  const lines = typeof text === 'string' ? text : text.join('\n');
  return { text: lines, citations: citations.flat() };
}

/** All of a part are about a run, as a whole where they do not say otherwise. */
export function ofRuns({ questions, ...part }: Questions): Questions {
  return {
    ...part,
    questions: questions.map((question) => ({ ofRun: 'whole', ...question })),
  };
}

/** Questions of one part, with what they have in common. */
export interface Questions {
  readonly title: string;
  readonly questions: readonly KnownQuestion[];
}
