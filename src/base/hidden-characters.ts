/**
 * Invisible characters that change how a text looks: controls, bidirectional embeddings, overrides
 * and isolates, zero-width characters, line and paragraph separators, and other characters that
 * Unicode lets programs ignore. They make one name look like another.
 *
 * Some scripts and emoji need a few of them; these are allowed where they have a visible effect.
 */
const HIDDEN = String.raw`[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]`;

/** Letters and marks that change their form with a joiner (U+200D) or non-joiner (U+200C). */
const JOINING = ((scripts) => `[${scripts.map((name) => `\\p{scx=${name}}`).join('')}]`)([
  'Arab',
  'Syrc',
  'Nkoo',
  'Mong',
  'Deva',
  'Beng',
  'Guru',
  'Gujr',
  'Orya',
  'Taml',
  'Telu',
  'Knda',
  'Mlym',
  'Sinh',
  'Khmr',
  'Mymr',
]);
/** Signs of the Indic scripts after which a joiner may also end a word. */
const VIRAMA = String.raw`[\u094D\u09CD\u0A4D\u0ACD\u0B4D\u0BCD\u0C4D\u0CCD\u0D4D\u0DCA]`;

const ALLOWED = [
  String.raw`(?<=(?=[\p{L}\p{M}])${JOINING})[\u200C\u200D](?=[\p{L}\p{M}])(?=${JOINING})`,
  String.raw`(?<=${VIRAMA})[\u200C\u200D]`,
  // Emoji that are composed of several, such as families and professions.
  String.raw`(?<=\p{ExtPict}[\uFE0F\p{EMod}]?)\u200D(?=\p{ExtPict})`,
  // A symbol as text or as emoji, a keycap, a variant of an ideograph.
  String.raw`(?<=\p{ExtPict})[\uFE0E\uFE0F]`,
  String.raw`(?<=[0-9#*])\uFE0F(?=\u20E3)`,
  String.raw`(?<=\p{scx=Han})[\uFE00-\uFE02\u{E0100}-\u{E01EF}]`,
].join('|');

let forbidden: RegExp | undefined;
let forbiddenFormat: RegExp | undefined;

/** Describes the first hidden character of a name and its position; `undefined` without one. */
export function hiddenCharacterProblem(text: string): string | undefined {
  // V8 takes milliseconds to compile the other expression, which most commands do not need.
  if (/^[\x20-\x7E]*$/.test(text)) return undefined;
  forbidden ??= new RegExp(`(?!${ALLOWED})${HIDDEN}`, 'u');
  const found = forbidden.exec(text);
  if (found === null) return undefined;
  const position = Array.from(text.slice(0, found.index)).length + 1;
  return `must not contain the control or invisible character ${codePoint(found[0])} at position ${position}`;
}

/** The text with its hidden characters as `[U+202E]`, which is also safe in HTML. Controls stay. */
export function showHidden(text: string): string {
  if (/^\p{ASCII}*$/u.test(text)) return text;
  forbiddenFormat ??= new RegExp(String.raw`(?!\p{Cc}|${ALLOWED})${HIDDEN}`, 'gu');
  return text.replaceAll(forbiddenFormat, (character) => `[${codePoint(character)}]`);
}

function codePoint(character: string): string {
  return `U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}`;
}
