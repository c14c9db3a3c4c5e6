import { describe, expect, it } from 'vitest';
import { hiddenCharacterProblem, showHidden } from '../../src/base/hidden-characters.ts';
import { printable } from '../../src/base/printable.ts';

const at = (code: string, position: number): string =>
  `must not contain the control or invisible character ${code} at position ${position}`;

describe('hiddenCharacterProblem', () => {
  it.each([
    ['right-to-left override', 'a\u202Egpj.exe', 'U+202E', 2],
    ['left-to-right embedding', '\u202Aa', 'U+202A', 1],
    ['isolate', 'ab\u2066c\u2069', 'U+2066', 3],
    ['Arabic letter mark', 'a\u061Cb', 'U+061C', 2],
    ['right-to-left mark', 'a\u200Fb', 'U+200F', 2],
    ['zero-width space', 'ac\u200Bme', 'U+200B', 3],
    ['word joiner', 'ac\u2060me', 'U+2060', 3],
    ['byte order mark', '\uFEFFacme', 'U+FEFF', 1],
    ['soft hyphen', 'ac\u00ADme', 'U+00AD', 3],
    ['line separator', 'a\u2028b', 'U+2028', 2],
    ['paragraph separator', 'a\u2029b', 'U+2029', 2],
    ['line feed', 'a\nb', 'U+000A', 2],
    ['C1 control', 'a\u009Bb', 'U+009B', 2],
    ['tag', 'a\u{E0041}b', 'U+E0041', 2],
    ['Hangul filler', 'a\u3164', 'U+3164', 2],
    ['unpaired surrogate', 'a\uD800', 'U+D800', 2],
    ['joiner between Latin letters', 'ac\u200Dme', 'U+200D', 3],
    ['non-joiner between Latin letters', 'ac\u200Cme', 'U+200C', 3],
    ['joiner after an emoji', '😀\u200D', 'U+200D', 2],
    ['joiner before a letter', 'a😀\u200Db', 'U+200D', 3],
    ['variation selector after a letter', 'a\uFE0F', 'U+FE0F', 2],
    ['variation selector after a digit', '1\uFE0F', 'U+FE0F', 2],
    ['second variation selector', '❤\uFE0F\uFE0F', 'U+FE0F', 3],
  ])('names a %s and its position', (_what, text, code, position) => {
    expect(hiddenCharacterProblem(text)).toBe(at(code, position));
  });

  it.each([
    ['Latin with accents', 'Ångström & Søn, Zürich'],
    ['combining accents', 'Zu\u0308rich'],
    ['Hebrew', 'חברת מסחר'],
    ['Arabic', 'شركة التداول'],
    ['Persian with a non-joiner', 'می\u200Cخواهم'],
    ['Hindi with a joiner', 'क\u094D\u200Dष'],
    ['Malayalam with a joiner at the end', 'അവന\u0D4D\u200D'],
    ['Sinhala with a joiner', 'ශ\u0DCA\u200Dරී'],
    ['a family of emoji', '👨\u200D👩\u200D👧\u200D👦'],
    ['a profession with a skin tone', '👩🏽\u200D💻'],
    ['emoji of a rainbow flag', '🏳\uFE0F\u200D🌈'],
    ['a heart as emoji', 'I ❤\uFE0F bots'],
    ['a keycap', '1\uFE0F\u20E3'],
    ['flags', '🇯🇵 🇨🇭'],
    ['a variant of an ideograph', '葛\u{E0100}飾'],
    ['Japanese', 'ボット・テスト'],
    ['typography', 'A – B … “C”\u00A0D'],
  ])('allows %s', (_what, text) => {
    expect(hiddenCharacterProblem(text)).toBeUndefined();
    expect(showHidden(text)).toBe(text);
  });
});

describe('a stored text with hidden characters', () => {
  it('shows hidden characters by their codes, and removes terminal sequences', () => {
    const name = 'ac\u200Bme \u202Etxt\u202C \u001B[31mred\u2028';
    expect(printable(name)).toBe('ac[U+200B]me [U+202E]txt[U+202C] red[U+2028]');
  });

  it('shows hidden characters in time proportional to the length of the text', () => {
    const text = '\u200D\u202Ea'.repeat(200_000);
    expect(showHidden(text)).toBe('[U+200D][U+202E]a'.repeat(200_000));
  });
});
