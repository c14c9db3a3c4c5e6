/**
 * The words of a text as they are compared, made here and not by the databases, so that all of them
 * find the same: in lower case, without the accents of Latin, Greek and Cyrillic letters, and nothing
 * but letters and digits. What is written without spaces is taken letter by letter. There are no
 * stems: `limit` does not find `limits`.
 */
const WITHOUT_SPACES = String.raw`\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}`;
const ACCENTS = /(?<=[\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}])\p{Mn}+/gu;
const PART = new RegExp(
  String.raw`(?<run>[[${WITHOUT_SPACES}]&&[\p{L}\p{M}\p{N}]]+)|[[\p{L}\p{M}\p{N}]--[${WITHOUT_SPACES}]]+`,
  'gv',
);

/** PostgreSQL leaves out words of 2 KB; none of a language is nearly as long as this. */
const LONGEST_WORD = 64;

/** @returns the words with spaces between, to be indexed. */
export function termsOf(text: string): string {
  return partsOf(text).flat().join(' ');
}

/**
 * What to look for: words, and pairs of letters where there are no spaces.
 * @returns each once, in the order of the text, at most `most`.
 */
export function queryTerms(text: string, most: number): readonly string[] {
  const terms = partsOf(text).flatMap((part) =>
    typeof part === 'string' || part.length === 1
      ? part
      : part.slice(1).map((letter, i) => `${part[i]!} ${letter}`),
  );
  return [...new Set(terms)].slice(0, most);
}

/** Words, and letters of a run without spaces. */
function partsOf(text: string): (string | string[])[] {
  const plain = text.normalize('NFKD').toLowerCase().replaceAll(ACCENTS, '').normalize('NFC');
  return Array.from(plain.matchAll(PART), ([part, run]) =>
    run === undefined ? Array.from(part).slice(0, LONGEST_WORD).join('') : Array.from(run),
  );
}
