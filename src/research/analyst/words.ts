/** Splits a question into words, with numbers, signs and contractions in one form. */

const ID = /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi;

/** The rest of a longer text is one word that nothing understands. */
const MOST_WORDS = 80;
const LONGEST_TEXT = 2000;

const SMALL =
  'two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen'.split(' ');
const LARGE = { twenty: '20', thirty: '30', forty: '40', fifty: '50', hundred: '100' };
const NUMBERS = new Map([
  ...SMALL.map((word, i): [string, string] => [word, String(i + 2)]),
  ...Object.entries(LARGE),
]);
const ORDINALS = 'second third fourth fifth sixth seventh eighth ninth tenth'.split(' ');

type Rewrite = readonly [RegExp, string | ((...found: string[]) => string)];

const REWRITES: readonly Rewrite[] = [
  [/[‘’`´]/g, "'"],
  [/[−–—]/g, '-'],
  [/\bwon't\b/g, 'will not'],
  [/\bcan(?:'t|not)\b/g, 'can not'],
  [/n't\b/g, ' not'],
  [/\b(what|how|who|when|where|that)'?s\b/g, '$1 is'],
  [/\b(which|it|there)'s\b/g, '$1 is'],
  [/'(?:s|re|ve|ll|d|m)\b/g, ''],
  [/s'(?=\s|$)/g, 's'],
  [/\bp\s?(?:&|and|\/)\s?l\b/g, 'pnl'],
  [/&/g, ' and '],
  [/\bdraw[\s-]+down/g, 'drawdown'],
  [/(\d),(?=\d{3}(?!\d))/g, '$1'],
  [/\b((?:19|20)\d\d)\s?-\s?((?:19|20)\d\d)\b/g, '$1 to $2'],
  [/(\d)\s?(?:%|percent\b|per cent\b|pct\b)/g, '$1% '],
  [/%-(?=[a-z])/g, '% '],
  [/\bper cent\b/g, 'percent'],
  [/\b(\d+(?:\.\d+)?)\s?k\b/g, (_, number) => String(Number(number) * 1000)],
  [/\b(\d+)x\b/g, '$1 times'],
  [/\b(\d+)-(?=(?:day|week|month|year|bar)s?\b)/g, '$1 '],
  [/([a-z])-(?=[a-z])/g, '$1 '],
  [/\b(than|under|over|least|most|within) half a year\b/g, '$1 6 months'],
  [/\b(than|under|over|least|most|within) an? (?=(?:day|week|month|year)\b)/g, '$1 1 '],
  [/\b((?:19|20)\d0)'?s\b/g, '$1 s'],
  [/\b(\d+)(?:st|nd|rd)\b/g, '$1th'],
];

const WORD =
  /#run|\d{4}-\d\d(?:-\d\d)?(?!\d)|(?:(?<=^|[\s($])-)?\d+(?:\.\d+)?(?:%|th\b)?|[\p{L}_][\p{L}\p{N}_]*|[<>]=?|[^\s\p{L}\p{N}]/gu;

export interface Words {
  readonly words: readonly string[];
  /** Ids of runs. Each is a word `#run`. */
  readonly ids: readonly string[];
}

export function splitWords(text: string): Words {
  const ids = text.match(ID) ?? [];
  let plain = text.slice(0, LONGEST_TEXT).replaceAll(ID, ' #run ').normalize('NFKC').toLowerCase();
  for (const [pattern, by] of REWRITES) plain = plain.replaceAll(pattern, by as string);
  const words = (plain.match(WORD) ?? []).map((word) => {
    const place = ORDINALS.indexOf(word);
    return place === -1 ? (NUMBERS.get(word) ?? word) : `${place + 2}th`;
  });
  const rest = words.length > MOST_WORDS ? ['…'] : [];
  return {
    words: [...words.slice(0, MOST_WORDS), ...rest],
    ids: ids.map((id) => id.toLowerCase()),
  };
}
