import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatSeconds, parseSeconds } from '../../src/base/seconds.ts';

test.each([
  ['7d', 604_800],
  ['12h', 43_200],
  ['90m', 5400],
  ['90s', 90],
  ['0d', 0],
])('%s is parsed as %d seconds', (text, seconds) => {
  expect(parseSeconds(text)).toBe(seconds);
});

test('parseSeconds returns any number of seconds that formatSeconds has written', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 999_999_999 }), (seconds) => {
      expect(parseSeconds(formatSeconds(seconds))).toBe(seconds);
    }),
  );
});

test.each(['7', 'd', '', '-1d', '1.5d', '7 d', '7D', '1w', '1e3s', '9999999999s'])(
  '%j is rejected as a duration',
  (text) => {
    expect(() => parseSeconds(text)).toThrow(expect.objectContaining({ code: 'usage' }));
  },
);
