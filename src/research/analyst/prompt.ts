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
const MOST_WORDS = 500;

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

/** Whether a word is one of a key: `trade|deal` or `#year`. */
function isMeant(word: string, token: string): boolean {
  if (token === '#year') return /^(19|20)\d\d$/.test(word);
  return token.split('|').some((one) => ENDINGS.some((ending) => word === `${one}${ending}`));
}

/** The places of the words of a key; undefined where one is not there. */
export function placesOf(key: string, words: readonly string[]): ReadonlySet<number> | undefined {
  const places = new Set<number>();
  for (const token of key.split(' ')) {
    const place = words.findIndex((word, i) => !places.has(i) && isMeant(word, token));
    if (place === -1) return undefined;
    places.add(place);
  }
  return places;
}
