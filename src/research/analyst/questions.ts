import { LIMIT_QUESTIONS, HALTS, STATE } from './control.ts';
import { CURVE } from './curve.ts';
import { ELSEWHERE } from './elsewhere.ts';
import type { KnownQuestion, Questions } from './question.ts';
import { NEWS } from './news.ts';
import { RESULTS, TRADING } from './results.ts';
import { SPEC_QUESTIONS } from './spec.ts';
import { RUNS, VERSIONS } from './versions.ts';

/** All that the analyst knows, as `What can I ask?` lists it. */
export const PARTS: readonly Questions[] = [
  RESULTS,
  TRADING,
  CURVE,
  RUNS,
  VERSIONS,
  NEWS,
  LIMIT_QUESTIONS,
  HALTS,
  STATE,
  SPEC_QUESTIONS,
  ELSEWHERE,
];

export const QUESTIONS: readonly KnownQuestion[] = PARTS.flatMap(({ questions }) => questions);
