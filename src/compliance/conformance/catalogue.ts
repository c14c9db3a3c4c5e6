import { CASES_A } from './cases-a.ts';
import type { Case } from './case.ts';

/** Every case, in order. */
export const CATALOGUE: readonly Case[] = [...CASES_A];
