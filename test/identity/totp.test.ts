import { expect, test } from 'vitest';
import { newTotpSecret, totpStep } from '../../src/identity/totp.ts';

/** `12345678901234567890`, the secret of RFC 6238, appendix B. */
const SECRET = 'GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ';

/** The RFC has codes of eight digits; apps show the last six. */
test.each([
  [59, '287082'],
  [1_111_111_109, '081804'],
  [1_111_111_111, '050471'],
  [1_234_567_890, '005924'],
  [2_000_000_000, '279037'],
  [20_000_000_000, '353130'],
])('at %d s the code is %s, as in RFC 6238', (seconds, code) => {
  expect(totpStep(SECRET, code, seconds * 1000)).toBe(Math.floor(seconds / 30));
});

test('a code is valid from one step early to one step late', () => {
  const step = 41_152_263;
  const at = (offset: number) => totpStep(SECRET, '005924', (step + offset) * 30_000);
  expect([-2, -1, 0, 1, 2].map(at)).toEqual([undefined, step, step, step, undefined]);
  expect(totpStep(SECRET, '005924', (step + 2) * 30_000 - 1)).toBe(step);
});

test.each(['', '00592', '0059240', '005925', 'abcdef', '٠٠٥٩٢٤'])('%j is not a code', (text) => {
  expect(totpStep(SECRET, text, 1_234_567_890_000)).toBeUndefined();
});

test('a new secret has 160 bits and a URI for apps', () => {
  const { secret, uri } = newTotpSecret('ada+ops@example.org');
  expect(secret).toMatch(/^[A-Z2-7]{32}$/);
  expect(newTotpSecret('ada').secret).not.toBe(secret);
  const { protocol, host, pathname, searchParams } = new URL(uri);
  expect(`${protocol}//${host}`).toBe('otpauth://totp');
  expect(decodeURIComponent(pathname)).toBe('/service-local:ada+ops@example.org');
  expect(Object.fromEntries(searchParams)).toEqual({
    issuer: 'service-local',
    secret,
    algorithm: 'SHA1',
    digits: '6',
    period: '30',
  });
});
