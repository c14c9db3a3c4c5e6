import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { constants, createContext, runInContext } from 'node:vm';
import { rolldown } from 'rolldown';
import { beforeAll, expect, test } from 'vitest';
import { startChromium } from '../chromium.ts';
import { isAtLength } from '../length.ts';
import { type Vector, VECTORS, type Vectors } from './make-vectors.ts';

/** Judges the vectors with the bundle, as text, since that passes any border. */
const JUDGE = `(input) => JSON.stringify(JSON.parse(input).map((vector) => {
  const now = Date.parse(vector.now);
  const held = vector.held === null ? undefined : lease.verifyTrust(vector.held, { now: 0 });
  const trust = lease.verifyTrust(vector.keyset, { held, now, ...(vector.pin && { pin: vector.pin }) });
  if (!trust.ok) return ['refused', trust.reason];
  if (vector.lease === null) return ['trusted', null];
  const verified = lease.verifyLease(vector.lease, trust.keys);
  if (!verified.ok) return ['refused', verified.reason];
  const usable = lease.checkLeaseUse(verified.claims, vector.use);
  if (!usable.ok) return ['refused', usable.reason];
  const { state, reason } = lease.leaseStatus(verified.claims, now);
  return [state, reason];
}))`;

const { vectors } = JSON.parse(readFileSync(VECTORS, 'utf8')) as Vectors;

const given = (chosen: readonly Vector[]): string => JSON.stringify(chosen);
const expected = (chosen: readonly Vector[]): unknown =>
  chosen.map(({ state, reason }) => [state, reason]);

const tried = isAtLength ? vectors : vectors.filter((_, index) => index % 3 === 0);

/** The published part as one script, which makes the global `lease`. */
let script = '';

beforeAll(async () => {
  const bundle = await rolldown({
    input: join(import.meta.dirname, '../../src/lease/api.ts'),
    platform: 'browser',
  });
  const { output } = await bundle.generate({ format: 'iife', name: 'lease', minify: true });
  await bundle.close();
  script = output[0].code;
});

test.runIf(isAtLength)('the lease verifier runs in an engine with ECMAScript only', () => {
  // An ordinary global: each look-up in that of a sandbox costs as much as a function of C++.
  const context = createContext(constants.DONT_CONTEXTIFY);
  expect(runInContext('typeof TextEncoder + typeof atob + typeof crypto', context)).toBe(
    'undefined'.repeat(3),
  );
  runInContext(script, context);
  const judge = runInContext(JUDGE, context) as (input: string) => string;
  expect(JSON.parse(judge(given(tried)))).toEqual(expected(tried));
});

test.runIf(isAtLength)('the lease verifier runs in a browser', async () => {
  const browser = await startChromium();
  try {
    const page = await browser.newPage();
    const errors: unknown[] = [];
    page.on('pageerror', (error) => errors.push(error));
    await page.setContent(`<script>${script.replaceAll('</script', '<\\/script')}</script>`);
    const answer = await page.evaluate(`(${JUDGE})(${JSON.stringify(given(tried))})`);
    expect(JSON.parse(answer as string)).toEqual(expected(tried));
    expect(errors).toEqual([]);
  } finally {
    await browser.close();
  }
});

test('the lease verifier is small enough for a page', () => {
  expect(script.length).toBeLessThan(60_000);
});
