/**
 * Splits texts into words here rather than in the database, so that SQLite and PostgreSQL find the same.
 * Words consist of lowercase letters and digits, without the accents of Latin, Greek and Cyrillic
 * letters. Scripts without spaces are split into letters. There is no stemming: `limit` does not find
 * `limits`.
 */
const WITHOUT_SPACES = String.raw`\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}`;
const ACCENTS = /(?<=[\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}])\p{Mn}+/gu;
const PART = new RegExp(
  String.raw`(?<run>[[${WITHOUT_SPACES}]&&[\p{L}\p{M}\p{N}]]+)|[[\p{L}\p{M}\p{N}]--[${WITHOUT_SPACES}]]+`,
  'gv',
);

/** Letters. PostgreSQL ignores words of 2 KB, and no word of a language is longer than this. */
const LONGEST_WORD = 64;

/** Returns the words to index, separated by spaces. */
export function termsOf(text: string): string {
  return partsOf(text).flat().join(' ');
}

/**
 * Returns what to search for: words, and pairs of letters for scripts without spaces.
 * @returns at most `most` distinct terms, in the order of the text.
 */
export function queryTerms(text: string, most: number): readonly string[] {
  const terms = partsOf(text).flatMap((part) =>
    typeof part === 'string' || part.length === 1
      ? part
      : part.slice(1).map((letter, i) => `${part[i]!} ${letter}`),
  );
  return [...new Set(terms)].slice(0, most);
}

/** A string is a word; an array has the letters of a run without spaces. */
function partsOf(text: string): (string | string[])[] {
  const plain = text.normalize('NFKD').toLowerCase().replaceAll(ACCENTS, '').normalize('NFC');
  return Array.from(plain.matchAll(PART), ([part, run]) =>
    run === undefined ? Array.from(part).slice(0, LONGEST_WORD).join('') : Array.from(run),
  );
}
