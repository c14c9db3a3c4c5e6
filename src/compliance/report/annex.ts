import { formatCountOf } from '../../base/format.ts';
import { article } from '../articles.ts';
import { draft, human } from './report-fields.ts';
import type { Criterion, Draft, Figure, Report } from './payload.ts';

/** Facts and drafts by citation, such as `I(1)(c)`; people assess the other criteria without them. */
export type AnnexFacts = Readonly<Record<string, Figure | Draft>>;

const LETTERS = {
  nature: 'abcdefghijkl',
  scale: 'abcdefghijklmn',
  complexity: 'abcdefghi',
} as const;

export function buildAnnexI(facts: AnnexFacts): Report['annex_i'] {
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

export function draftStrategy(name: string, timeframe: string, symbols: number): Draft {
  return draft(
    `The strategy ${name} makes decisions on ${timeframe} bars of ${formatCountOf(symbols, 'instrument')}. Describe its risks.`,
  );
}
