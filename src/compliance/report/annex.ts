import { article } from '../articles.ts';
import { draft, human } from './fields.ts';
import type { Criterion, Draft, Figure, Report } from './payload.ts';

/** What the records say of some criteria, by their places as `I(1)(c)`; the others are for people. */
export type AnnexFacts = Readonly<Record<string, Figure | Draft>>;

const LETTERS = {
  nature: 'abcdefghijkl',
  scale: 'abcdefghijklmn',
  complexity: 'abcdefghi',
} as const;

/** The criteria of Annex I, with what is known of them. */
export function annexI(facts: AnnexFacts): Report['annex_i'] {
  return {
    nature: criteria(1, LETTERS.nature, facts),
    scale: criteria(2, LETTERS.scale, facts),
    complexity: criteria(3, LETTERS.complexity, facts),
  };
}

function criteria(number: number, letters: string, facts: AnnexFacts): Criterion[] {
  return letters.split('').map((id) => {
    const ref = `I(${number})(${id})`;
    const known = facts[ref];
    return {
      id,
      ref,
      requirement: article(ref).requirement,
      fact: known?.marker === 'A' ? known : null,
      draft: known?.marker === 'M' ? known : null,
      assessment: human(),
    };
  });
}

/** What is known of the strategy by its spec, for a person to judge. */
export function strategyDraft(name: string, timeframe: string, symbols: number): Draft {
  return draft(
    `The strategy ${name} decides on bars of ${timeframe} over ${symbols} ${symbols === 1 ? 'instrument' : 'instruments'}. Its risks are to be described.`,
  );
}
