import canonicalize from 'canonicalize';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  decodeBase64,
  decodeBase64Url,
  encodeBase64,
  encodeBase64Url,
} from '../../src/lease/base64.ts';
import { preAuthEncoding } from '../../src/lease/envelope.ts';
import { canonicalJson, parseStrictJson } from '../../src/lease/json.ts';
import { type LeaseError, orRefused } from '../../src/lease/refusal.ts';
import { formatTime, parseTime } from '../../src/lease/time.ts';
import { decodeUtf8, encodeUtf8 } from '../../src/lease/utf8.ts';
import { runs } from '../length.ts';

const bytes = fc.uint8Array({ maxLength: 100 });
/** Text of any characters, but no half of a pair. */
const text = fc
  .array(
    fc.oneof(fc.nat({ max: 0x7f }), fc.nat({ max: 0x10ffff })).filter((c) => c >> 11 !== 0x1b),
    { maxLength: 10 },
  )
  .map((characters) => String.fromCodePoint(...characters));
const plain = (buffer: Buffer): Uint8Array => new Uint8Array(buffer);

describe('base64', () => {
  test('base64 agrees with Node in both directions', () => {
    fc.assert(
      fc.property(bytes, (input) => {
        const buffer = Buffer.from(input);
        expect(encodeBase64(input)).toBe(buffer.toString('base64'));
        expect(encodeBase64Url(input)).toBe(buffer.toString('base64url'));
        expect(decodeBase64(buffer.toString('base64'))).toEqual(input);
        expect(decodeBase64Url(buffer.toString('base64url'))).toEqual(input);
      }),
    );
  });

  test('base64 is refused unless it is the canonical form of its bytes', () => {
    const nearly = fc.stringMatching(/^[AQZagz019+/=_ -]{0,12}$/);
    fc.assert(
      fc.property(nearly, (input) => {
        const decoded = decodeBase64(input);
        const isCanonical = Buffer.from(input, 'base64').toString('base64') === input;
        expect(decoded).toEqual(isCanonical ? plain(Buffer.from(input, 'base64')) : undefined);
      }),
      { numRuns: runs(250) },
    );
  });

  test.each(['AA', 'AA=', 'AB==', 'AAA', 'AAB=', 'AA==\n', ' AA==', 'AA==AA==', '=', '-_==', 'é'])(
    'has no other form: %j',
    (input) => {
      expect(decodeBase64(input)).toBeUndefined();
    },
  );
});

describe('UTF-8', () => {
  test('UTF-8 encoding agrees with the platform for every text', () => {
    fc.assert(
      fc.property(text, (input) => {
        expect(encodeUtf8(input)).toEqual(plain(Buffer.from(input)));
        expect(decodeUtf8(encodeUtf8(input))).toBe(input);
      }),
      { numRuns: runs(250) },
    );
  });

  test('UTF-8 decoding refuses the same bytes as the platform', () => {
    const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
    // Lead bytes and continuations, so that most inputs are nearly right.
    const byte = fc.constantFrom(0x41, 0x80, 0xbf, 0xc0, 0xc3, 0xe0, 0xed, 0xa0, 0xf0, 0x90, 0xf4);
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 6 }), (input) => {
        const encoded = Uint8Array.from(input);
        let expected: string | undefined;
        try {
          expected = decoder.decode(encoded);
        } catch {
          expected = undefined;
        }
        expect(decodeUtf8(encoded)).toBe(expected);
      }),
      { numRuns: runs(500) },
    );
  });
});

describe('times', () => {
  test('times are parsed as they are formatted', () => {
    const second = fc.integer({ min: -62_135_596_800, max: 253_402_300_799 });
    fc.assert(
      fc.property(second, (value) => {
        expect(parseTime(formatTime(value * 1000))).toBe(value * 1000);
      }),
    );
    expect(formatTime(Date.UTC(2026, 0, 2, 3, 4, 5, 678))).toBe('2026-01-02T03:04:05Z');
  });

  test.each([
    '2026-01-02T03:04:05.000Z',
    '2026-01-02T03:04:05+00:00',
    '2026-01-02T03:04:05',
    '2026-01-02T03:04Z',
    '2026-01-02',
    '2026-01-02 03:04:05Z',
    '2026-02-30T00:00:00Z',
    '2025-02-29T00:00:00Z',
    '2026-01-01T24:00:00Z',
    '2026-06-30T23:59:60Z',
    '+002026-01-02T03:04:05Z',
    '2026-01-02T03:04:05Z\n',
    '0000-12-31T23:59:59Z',
  ])('have no other form: %j', (input) => {
    expect(parseTime(input)).toBeUndefined();
  });
});

test('canonical JSON is that of RFC 8785', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
      expect(canonicalJson(value)).toBe(canonicalize(value));
    }),
    { numRuns: runs(125) },
  );
  const mixed = { b: [{ 2: 1, 10: 0 }], a: { é: 1e21, '\ud83d\ude00': -0, '\ufb33': '\u0007' } };
  expect(canonicalJson(mixed)).toBe(canonicalize(mixed));
});

describe('strict JSON', () => {
  const read = (input: string): unknown => orRefused(() => parseStrictJson(input, 'it'));

  test('parses what JSON.parse parses', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), fc.constantFrom(0, 1), (json, indent) => {
        fc.pre(!json.includes('__proto__'));
        const input = JSON.stringify(JSON.parse(json), null, indent);
        expect(parseStrictJson(input, 'it')).toEqual(JSON.parse(input));
      }),
      { numRuns: runs(125) },
    );
  });

  test('finds a repeated name anywhere and in any spelling', () => {
    const escaped = (name: string): string =>
      Array.from(
        { length: name.length },
        (_, index) => `\\u${name.charCodeAt(index).toString(16).padStart(4, '0')}`,
      ).join('');
    const around = fc.constantFrom('#', '[#]', '{"a":#}', '[{"b":[1,#,"]"]}]', '{"{\\"":[[#]]}');
    const between = fc.constantFrom('', '"x":1,', '"y":{"z":[]},', '"\\\\":"\\"}",');
    fc.assert(
      fc.property(text, around, between, fc.boolean(), (name, place, others, isEscaped) => {
        fc.pre(!['x', 'y', '\\'].includes(name));
        const again = isEscaped ? `"${escaped(name)}"` : JSON.stringify(name);
        const make = (second: string): string =>
          place.replace('#', () => `{${JSON.stringify(name)}:1,${others}${second} :2}`);
        expect(read(make(again))).toMatchObject({ reason: 'duplicate_member' });
        expect(read(make('"another name"'))).not.toHaveProperty('reason');
      }),
      { numRuns: runs(125) },
    );
  });

  test.each([
    ['nothing', 'not_json', ''],
    ['half an object', 'not_json', '{'],
    ['two documents', 'not_json', '{} {}'],
    ['a last comma', 'not_json', '{"a":1,}'],
    ['single quotes', 'not_json', "{'a':1}"],
    ['a byte order mark', 'not_json', '\uFEFF{}'],
    ['NaN', 'not_json', '[NaN]'],
    ['a line break in a text', 'not_json', '["\n"]'],
    ['brackets without end', 'not_json', '['.repeat(65_536)],
    ['17 levels', 'nested_too_deep', `${'['.repeat(17)}${']'.repeat(17)}`],
    ['__proto__', 'forbidden_member', '{"__proto__":null}'],
    ['__proto__ in disguise', 'forbidden_member', '[{"\\u005f_proto__":{}}]'],
    ['more than 64 KiB', 'too_large', `${' '.repeat(65_535)}{}`],
    ['more than 64 KiB of UTF-8', 'too_large', `["${'é'.repeat(32_768)}"]`],
    ['half a surrogate pair', 'not_json', '["\ud83d"]'],
    ['half a surrogate pair as an escape', 'not_json', '["\\udE00\\ud83d"]'],
    ['half a surrogate pair in a name', 'not_json', '{"\\ud83d":0}'],
  ])('refuses %s: %s', (_, reason, input) => {
    expect(read(input)).toMatchObject({ ok: false, reason });
  });

  test('allows the same name in different objects, 16 levels and 64 KiB', () => {
    expect(parseStrictJson('[{"a":{"a":1}},{"a":"a\\":"}]', 'it')).toEqual([
      { a: { a: 1 } },
      { a: 'a":' },
    ]);
    expect(read(`${'['.repeat(16)}${']'.repeat(16)}`)).not.toHaveProperty('reason');
    expect(read(' '.repeat(65_534) + '{}')).toEqual({});
    expect(read('["\\ud83d\\ude00 \\\\ud83d"]')).toEqual(['😀 \\ud83d']);
  });

  test('keeps an error on one short line', () => {
    const refusal = read(`{"${'\\n'.repeat(500)}":1,"${'\\n'.repeat(500)}":2}`) as LeaseError;
    expect(JSON.stringify(refusal).length).toBeLessThan(250);
  });
});

test('the signed bytes are the PAE of DSSE, with lengths in bytes', () => {
  const hello = plain(Buffer.from('hello world'));
  // The example of DSSE's protocol.md.
  expect(Buffer.from(preAuthEncoding('http://example.com/HelloWorld', hello)).toString()).toBe(
    'DSSEv1 29 http://example.com/HelloWorld 11 hello world',
  );
  expect(Buffer.from(preAuthEncoding('é', new Uint8Array())).toString()).toBe('DSSEv1 2 é 0 ');
});
