import { expect, test } from 'vitest';
import { createRedactor } from '../../../src/trading/venues/credentials.ts';

test('removes each line of a key with several lines, but not the words around them', () => {
  const lines = ['MIIEvQIBADANBgkqhkiG', '9w0BAQEFAASCBKcwggSj'];
  const secret = `-----BEGIN PRIVATE KEY-----\n${lines.join('\n')}\n-----END PRIVATE KEY-----`;
  const redact = createRedactor({ apiKey: 'canary-of-an-account', secret });
  expect(redact(`cannot read ${lines[1]} of a PRIVATE key`)).toBe('cannot read … of a PRIVATE key');
  expect(redact(`cannot parse ${secret}`)).toBe('cannot parse …');
});

test('leaves texts as they are if a credential is too short to be one', () => {
  const redact = createRedactor({ apiKey: 'canary-of-an-account', secret: 'canary', uid: '40' });
  expect(redact('status 400')).toBe('status 400');
});
