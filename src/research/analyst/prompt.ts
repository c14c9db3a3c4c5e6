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
/** Far more than any question has. */
const MOST_WORDS = 100;

export function readPrompt(text: string): Prompt {
  const ids = text.match(ID) ?? [];
  const words = text
    .replaceAll(ID, ' ')
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/\bdraw[ -]downs?\b/g, 'drawdown')
    .split(/[^\p{L}\p{N}_]+/u)
    .filter((word) => word !== '')
    .slice(0, MOST_WORDS);
  const numbers = words.flatMap((word) => /^v?(\d{1,4})$/.exec(word)?.[1] ?? []).map(Number);
  const isYear = (number: number): boolean => number >= 1900 && number <= 2100;
  const isAboutVersions = words.some((word) => /^(v\d+|versions?)$/.test(word));
  return {
    text,
    words,
    ids: ids.map((id) => id.toLowerCase()),
    versions: isAboutVersions ? numbers.filter((one) => one > 0 && !isYear(one)) : [],
    years: numbers.filter(isYear),
  };
}

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

function isMeant(word: string, token: string): boolean {
  return token === '#year' ? /^(19|20)\d\d$/.test(word) : formsOf(token).has(word);
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
