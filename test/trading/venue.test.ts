import { expect, test } from 'vitest';
import { clientOrderId, epochOfClientId, orderOfClientId } from '../../src/trading/venue.ts';

const DEPLOYMENT = '01980000-0000-7000-8000-000000000001';

test('clientOrderId is stable and uses only characters that every venue accepts', () => {
  // A literal, because orders placed by an earlier release must be found again.
  expect(clientOrderId(DEPLOYMENT, 17)).toBe('slkkdj6sgf3h-17');
  expect(clientOrderId(DEPLOYMENT, 999_999_999_999_999)).toMatch(/^[a-z0-9-]{1,32}$/);
});

test('orderOfClientId recognizes only orders of the deployment', () => {
  for (const order of [1, 17, 999_999_999_999_999]) {
    expect(orderOfClientId(DEPLOYMENT, clientOrderId(DEPLOYMENT, order))).toBe(order);
    expect(orderOfClientId(DEPLOYMENT, clientOrderId('another', order))).toBeUndefined();
  }
  const prefix = clientOrderId(DEPLOYMENT, 1).slice(0, -1);
  for (const number of ['', '0', '01', '1x', '-1', '1.5', '1234567890123456']) {
    expect(orderOfClientId(DEPLOYMENT, prefix + number)).toBeUndefined();
  }
  expect(orderOfClientId(DEPLOYMENT, 'x')).toBeUndefined();
  expect(orderOfClientId(DEPLOYMENT, '')).toBeUndefined();
});

test("client order ids contain the server's epoch from the second one on, and fit venue limits", () => {
  expect(clientOrderId(DEPLOYMENT, 17, 1)).toBe('slkkdj6sgf3h-17');
  expect(clientOrderId(DEPLOYMENT, 17, 2)).toBe('slkkdj6sgf3he2-17');
  const longest = clientOrderId(DEPLOYMENT, 999_999_999_999_999, 36 ** 3 - 1);
  expect(longest).toMatch(/^[a-z0-9-]{32}$/);
  for (const epoch of [1, 2, 35, 36, 36 ** 3 - 1]) {
    const name = clientOrderId(DEPLOYMENT, 17, epoch);
    expect([orderOfClientId(DEPLOYMENT, name), epochOfClientId(DEPLOYMENT, name)]).toEqual([
      17,
      epoch,
    ]);
    expect(epochOfClientId('another', name)).toBeUndefined();
  }
  for (const mark of ['e', 'e0', 'e01', 'e1234', 'x2']) {
    expect(orderOfClientId(DEPLOYMENT, `slkkdj6sgf3h${mark}-17`)).toBeUndefined();
  }
});
