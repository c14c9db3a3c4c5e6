import type { Case } from './case.ts';
import { CASES_A } from './cases-a.ts';
import { CASES_B } from './cases-b.ts';
import { CASES_C } from './cases-c.ts';

/** Every case, in order. */
export const CATALOGUE: readonly Case[] = [...CASES_A, ...CASES_B, ...CASES_C];
