import { closest } from '../../base/closest.ts';

/** Shorter words have too many neighbors. */
const SHORTEST = 5;

/** Words that resemble a word of the lexicon but mean something else. */
const OTHERS = new Set('winter gold lower media crash'.split(' '));

/**
 * The word of the vocabulary that a misspelled word means: one with the same first letter that
 * differs in one letter, or undefined.
 */
export function closestWord(word: string, vocabulary: ReadonlySet<string>): string | undefined {
  if (word.length < SHORTEST || OTHERS.has(word) || !/^[a-z]+$/.test(word)) return undefined;
  const near = [...vocabulary].filter(
    (known) =>
      known[0] === word[0] && Math.abs(known.length - word.length) <= 1 && known.length >= SHORTEST,
  );
  const meant = closest(word, near);
  return meant !== undefined && isOneEditAway(word, meant) ? meant : undefined;
}

/** Whether one letter is added, missing, different or swapped with its neighbor. */
function isOneEditAway(a: string, b: string): boolean {
  let start = 0;
  while (start < a.length && a[start] === b[start]) start += 1;
  const [rest, other] = [a.slice(start), b.slice(start)];
  return (
    rest.slice(1) === other ||
    rest === other.slice(1) ||
    rest.slice(1) === other.slice(1) ||
    (rest.slice(2) === other.slice(2) && rest[0] === other[1] && rest[1] === other[0])
  );
}
