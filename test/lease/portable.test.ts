import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { constants, createContext, runInContext } from 'node:vm';
import { rolldown } from 'rolldown';
import { beforeAll, expect, test } from 'vitest';
import { startChromium } from '../chromium.ts';
import { isAtLength } from '../length.ts';
import { VECTORS, type Vectors } from './make-vectors.ts';

/** Judges the vectors with the bundle, as text, since that passes any border. */
const JUDGE = `(input) => {
  const { keyset, leases, keysets, trust } = JSON.parse(input);
  const { keys } = lease.importKeyset(keyset);
  const reasonOf = (result) => result.reason ?? null;
  const [good] = leases.map((vector) => lease.verifyLease(vector.lease, keys));
  return JSON.stringify({
    leases: leases.map((vector) => reasonOf(lease.verifyLease(vector.lease, keys))),
    keysets: keysets.map((vector) => reasonOf(lease.importKeyset(vector.keyset))),
    trust: trust.map(({ document, held, pin, now }) => {
      const options = { now: Date.parse(now), ...(pin && { pin }) };
      const before = held && lease.verifyTrust(JSON.stringify(held), { now: 0 });
      return reasonOf(lease.verifyTrust(JSON.stringify(document), { ...options, ...(before && { held: before }) }));
    }),
    state: lease.leaseStatus(good.claims, Date.UTC(2026, 0, 13)).state,
  });
}`;

const vectors = readFileSync(VECTORS, 'utf8');
const { leases, keysets, trust } = JSON.parse(vectors) as Vectors;
const expected = {
  leases: leases.map(({ reason }) => reason),
  keysets: keysets.map(({ reason }) => reason),
  trust: trust.map(({ reason }) => reason),
  state: 'grace',
};

/** Those that are judged in a browser, too. */
const some = isAtLength
  ? { vectors, expected }
  : {
      vectors: JSON.stringify({ ...(JSON.parse(vectors) as Vectors), leases: leases.slice(0, 20) }),
      expected: { ...expected, leases: expected.leases.slice(0, 20) },
    };

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

test('it runs where there is ECMAScript and nothing else', () => {
  // An ordinary global: each look-up in that of a sandbox costs as much as a function of C++.
  const context = createContext(constants.DONT_CONTEXTIFY);
  expect(runInContext('typeof TextEncoder + typeof atob + typeof crypto', context)).toBe(
    'undefined'.repeat(3),
  );
  runInContext(script, context);
  const judge = runInContext(JUDGE, context) as (input: string) => string;
  expect(JSON.parse(judge(vectors))).toEqual(expected);
});

test('it runs in a browser', async () => {
  const browser = await startChromium();
  try {
    const page = await browser.newPage();
    const errors: unknown[] = [];
    page.on('pageerror', (error) => errors.push(error));
    await page.setContent(`<script>${script.replaceAll('</script', '<\\/script')}</script>`);
    const answer = await page.evaluate(`(${JUDGE})(${JSON.stringify(some.vectors)})`);
    expect(JSON.parse(answer as string)).toEqual(some.expected);
    expect(errors).toEqual([]);
  } finally {
    await browser.close();
  }
});

test('it is small enough for a page', () => {
  expect(script.length).toBeLessThan(60_000);
});
