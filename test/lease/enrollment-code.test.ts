import { expect, test } from 'vitest';
import {
  formatEnrollmentText,
  isEnrollmentCode,
  parseEnrollmentText,
} from '../../src/lease/enrollment-code.ts';

const CODE = '9F3K-EFGH-JKMN-PQRS-TVWX-YZ23-4567';
const ROOT = 'kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k';

test('an enrollment code carries the fingerprint of the root, and old codes stay readable', () => {
  const text = formatEnrollmentText({ code: CODE, rootFingerprint: ROOT });
  expect(text).toBe(`${CODE}.${ROOT}`);
  expect(parseEnrollmentText(` ${text}\n`)).toEqual({ code: CODE, rootFingerprint: ROOT });
  expect(formatEnrollmentText({ code: CODE })).toBe(CODE);
  expect(parseEnrollmentText(CODE)).toEqual({ code: CODE });
});

test('a code with a truncated fingerprint is not accepted as a code without a root', () => {
  for (const text of [`${CODE}.`, `${CODE}.${ROOT.slice(0, -1)}`, `${CODE}.${ROOT}.${ROOT}`]) {
    expect(parseEnrollmentText(text)).toBeUndefined();
  }
});

test('a code has 28 letters, however people type them', () => {
  for (const text of [CODE, CODE.toLowerCase(), CODE.replaceAll('-', ' '), 'OIL0'.repeat(7)]) {
    expect(isEnrollmentCode(text)).toBe(true);
  }
  for (const text of [
    '',
    'AAAA-BBBB',
    `${CODE}8`,
    CODE.replace('Z', 'U'),
    CODE.replace('Z', '?'),
  ]) {
    expect(isEnrollmentCode(text)).toBe(false);
  }
});
