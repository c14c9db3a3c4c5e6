/** What a person asks, as far as the analyst looks at it. */
export interface Prompt {
  readonly text: string;
  /** In lower case, without the ids. */
  readonly words: readonly string[];
  /** UUIDs: those of runs. */
  readonly ids: readonly string[];
  readonly versions: readonly number[];
  readonly years: readonly number[];
}

const ID = /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/gi;
const FIRST_YEAR = 1900;
/** Far more than any question has. */
const MOST_WORDS = 100;

export function withoutIds(text: string): string {
  return text.replaceAll(ID, ' ');
}

export function readPrompt(text: string): Prompt {
  const ids = text.match(ID) ?? [];
  const words = withoutIds(text)
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/\bdraw[ -]downs?\b/g, 'drawdown')
    .split(/[^\p{L}\p{N}_]+/u)
    .filter((word) => word !== '')
    .slice(0, MOST_WORDS);
  const numbers = words.flatMap((word) => /^v?(\d{1,4})$/.exec(word)?.[1] ?? []).map(Number);
  const isYear = (number: number): boolean => number >= FIRST_YEAR && number <= 2100;
  return {
    text,
    words,
    ids: ids.map((id) => id.toLowerCase()),
    versions: versionsIn(words),
    years: numbers.filter(isYear),
  };
}

/** What stands between versions: `versions 1 and 2`. */
const BETWEEN = new Set(['and', 'from', 'number', 'or', 'to', 'versus', 'vs', 'with']);

/** `v2`, and what follows `version`. */
function versionsIn(words: readonly string[]): number[] {
  let isNamed = false;
  return words.flatMap((word) => {
    const [, v, digits] = /^(v?)(\d{1,4})$/.exec(word) ?? [];
    if (/^versions?$/.test(word) || v === 'v') isNamed = true;
    else if (digits === undefined && !BETWEEN.has(word)) isNamed = false;
    const number = Number(digits);
    return isNamed && number > 0 && number < FIRST_YEAR ? [number] : [];
  });
}

const COUNTS = 'zero one two three four five six seven eight nine ten'.split(' ');
export const COUNT = new RegExp(`^(?:${COUNTS.slice(1).join('|')}|[1-9]\\d?)$`);
const ORDINALS = 'first second third fourth fifth sixth seventh eighth ninth tenth'.split(' ');

/** Requested number of items: `the five best`, `best 5`. */
export function countIn({ words, versions, years }: Prompt, otherwise = 1): number {
  const counts = words.map((word) =>
    COUNTS.includes(word) ? COUNTS.indexOf(word) : /^\d{1,2}$/.test(word) ? Number(word) : 0,
  );
  return counts.find((one) => one > 0 && ![...versions, ...years].includes(one)) ?? otherwise;
}

/** Which of several is asked for, from 1: `the second worst`. */
export function ordinalIn({ words }: Prompt): number {
  const found = words.find((word) => ORDINAL.test(word));
  if (found === undefined) return 1;
  const place = ORDINALS.indexOf(found) + 1;
  return place === 0 ? Number.parseInt(found, 10) : place;
}

export const ORDINAL = new RegExp(`^(?:${ORDINALS.slice(1).join('|')}|[2-9](?:nd|rd|th)|10th)$`);

const ENDINGS = ['', 's', 'es', 'd', 'ed', 'ing', 'al'];

const known = new Map<string, ReadonlySet<string>>();

/** All words that one of a key stands for: `trade|deal`. */
export function formsOf(token: string): ReadonlySet<string> {
  let forms = known.get(token);
  if (forms === undefined) {
    forms = new Set(token.split('|').flatMap((one) => ENDINGS.map((ending) => one + ending)));
    known.set(token, forms);
  }
  return forms;
}

/** Tokens of keys that are no words. */
const PATTERNS: Readonly<Record<string, RegExp>> = {
  '#year': /^(19|20)\d\d$/,
  '#version': /^v\d+$/,
  '#ordinal': ORDINAL,
};

function isMeant(word: string, token: string): boolean {
  return PATTERNS[token]?.test(word) ?? formsOf(token).has(word);
}

/** Words that ask, and say little of what for. */
const ASKING = new Set(
  'all are every has have how is list many much number of show was were what when which who whom why'.split(
    ' ',
  ),
);

/** How well a prompt fits a key, and by which of its words. */
export interface Fit {
  readonly weight: number;
  readonly places: ReadonlySet<number>;
}

/** Undefined where a word of the key is not there. */
export function fitOf(key: string, words: readonly string[]): Fit | undefined {
  const places = new Set<number>();
  let weight = 0;
  for (const token of key.split(' ')) {
    const place = words.findIndex((word, i) => !places.has(i) && isMeant(word, token));
    if (place === -1) return undefined;
    places.add(place);
    weight += ASKING.has(words[place]!) ? 0.1 : 1;
  }
  return { weight, places };
}
