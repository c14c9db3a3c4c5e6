/** Finds the phrases of a question. */
import { PERIOD_PHRASES } from './dates.ts';
import { FILLERS, PLAIN_PHRASES } from './plain-phrases.ts';
import { phrase, type Phrase, type Reading, type Tag } from './tags.ts';
import { CHANGES, CONDITIONS, NUMBERS } from './value-phrases.ts';

/** Splits a pattern at each `|` outside of parentheses, so that the longest alternative wins. */
function alternatives(pattern: string): string[] {
  let depth = 0;
  const parts = [''];
  for (const char of pattern) {
    if (char === '(') depth += 1;
    if (char === ')') depth -= 1;
    if (char === '|' && depth === 0) parts.push('');
    else parts[parts.length - 1] += char;
  }
  return parts;
}

const LEXICON: readonly Phrase[] = [
  ...PERIOD_PHRASES.map(([pattern, read]) =>
    phrase(pattern, (found) => ({ slot: 'period', value: read(found) })),
  ),
  ...CONDITIONS,
  ...CHANGES,
  ...PLAIN_PHRASES.flatMap(([slot, value, patterns]) =>
    alternatives(patterns).map((pattern) => phrase(pattern, () => ({ slot, value }))),
  ),
  ...NUMBERS,
];

export interface Lexed {
  readonly tags: readonly Tag[];
  readonly unknown: readonly string[];
}

/** Finds the longest phrase at each place. Words that belong to no phrase are unknown. */
export function lex(words: readonly string[], names: readonly Phrase[]): Lexed {
  const text = words.join(' ');
  const tags: Tag[] = [];
  const unknown: string[] = [];
  for (let at = 0; at < text.length;) {
    let length = 0;
    let reading: Reading | undefined;
    for (const { pattern, read } of [...names, ...LEXICON]) {
      pattern.lastIndex = at;
      const found = pattern.exec(text);
      if (found === null || found[0].length <= length) continue;
      length = found[0].length;
      reading = read(found);
    }
    if (reading === undefined) {
      const [word] = text.slice(at).split(' ') as [string];
      length = word.length;
      if (!FILLERS.has(word)) unknown.push(word);
    } else if (reading.slot !== 'filler') {
      tags.push({ ...reading, text: text.slice(at, at + length), at } as Tag);
    }
    at += length + 1;
  }
  return { tags, unknown };
}
