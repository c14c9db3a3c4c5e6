import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { article } from '../../../src/compliance/articles.ts';
import { EXERCISED } from '../../../src/compliance/conformance/case.ts';
import { CATALOGUE } from '../../../src/compliance/conformance/case-catalogue.ts';
import { runConformance } from '../../../src/compliance/conformance/run-conformance.ts';
import type { TriedBot } from '../../../src/compliance/conformance/tried-session.ts';
import * as bots from '../bots/bots.ts';
import { isAtLength, some } from '../../length.ts';

const SEED = 7;

const failed = async (bot: TriedBot, cases?: readonly string[]): Promise<string[]> => {
  const { cases: results } = await runConformance(bot, { seed: SEED, cases });
  return results.flatMap(({ id, status }) => (status === 'fail' ? [id] : []));
};

test('a correct bot passes every applicable case', async ({ onTestFinished }) => {
  const temporary = mkdtempSync(join(tmpdir(), 'service-local-cases-'));
  vi.stubEnv('TMPDIR', temporary);
  onTestFinished(() => {
    vi.unstubAllEnvs();
    rmSync(temporary, { recursive: true });
  });
  const lines: string[] = [];
  const ids = CATALOGUE.map(({ id }) => id).filter((_, index) => isAtLength || index % 10 === 0);
  const result = await runConformance(bots.correct, {
    seed: SEED,
    cases: ids,
    onEvidence: (line) => lines.push(line),
  });
  expect(result).toMatchObject({
    schema: 'conformance/1',
    environment: 'simulated_venue',
    discharges_art6: false,
    venue_report: null,
    seed: SEED,
    counts: { inconclusive: 0, not_run: CATALOGUE.length - ids.length },
  });
  expect(result.cases.map(({ id }) => id)).toEqual(ids);
  const wrong = result.cases.filter(({ status }) => status === 'fail');
  expect(Object.fromEntries(wrong.map(({ id, reason }) => [id, reason]))).toEqual({});
  const played = result.cases.filter(({ status }) => status !== 'not_applicable');
  for (const { id, evidence_hash, parts } of played) {
    expect([id, evidence_hash]).toEqual([id, expect.stringMatching(/^[\da-f]{64}$/)]);
    expect(parts.length).toBeGreaterThan(0);
    expect(lines.some((line) => line.includes(`"case":"${id}"`))).toBe(true);
  }
  for (const { status, reason, evidence_hash } of result.cases) {
    const isPlayed = status !== 'not_applicable';
    expect([isPlayed, reason === null]).toEqual([evidence_hash !== null, status === 'pass']);
  }
  // Only the facility of a venue can certify that.
  expect(lines.join('\n')).not.toMatch(/compliant/);
  // Sessions that were killed leave no files with credentials.
  expect(readdirSync(temporary)).toEqual([]);
});

test('cases are plain data and name existing modules', () => {
  expect(structuredClone(CATALOGUE)).toEqual(CATALOGUE);
  const source = join(import.meta.dirname, '../../../src');
  const modules = [...EXERCISED, ...CATALOGUE.flatMap(({ exercises = [] }) => exercises)];
  expect(modules.filter((path) => !existsSync(join(source, path)))).toEqual([]);
});

test('every paragraph that a case cites is in the table of articles', () => {
  expect(CATALOGUE).toHaveLength(18 + 15 + 7);
  expect(new Set(CATALOGUE.map(({ id }) => id)).size).toBe(CATALOGUE.length);
  for (const { articles } of CATALOGUE) {
    expect(articles.length).toBeGreaterThan(0);
    for (const citation of articles) expect(article(citation).requirement).not.toBe('');
  }
});

test.runIf(isAtLength)(
  'the same seed gives the same evidence in another process, and another seed gives different evidence',
  async () => {
    const cases = ['A08', 'A17', 'B12', 'C02'];
    const here = await runConformance(bots.correct, { seed: SEED, cases });
    const script = join(import.meta.dirname, 'evidence.ts');
    const there = execFileSync(process.execPath, [script, String(SEED), cases.join(',')], {
      encoding: 'utf8',
    });
    expect(there.trim()).toBe(here.evidence_hash);
    const again = await runConformance(bots.correct, { seed: SEED, cases: ['C02'] });
    expect(again.cases[0]!.evidence_hash).toBe(here.cases[3]!.evidence_hash);
    const other = await runConformance(bots.correct, { seed: SEED + 1, cases: ['C02'] });
    expect(other.cases[0]!.evidence_hash).not.toBe(here.cases[3]!.evidence_hash);
    expect(again.counts).toMatchObject({ pass: 1, not_run: CATALOGUE.length - 1 });
  },
);

/** Cases that each bot fails, and some that it passes. */
test.each(
  some(1, [
    [
      'a broken kill switch',
      bots.brokenKill,
      ['A06', 'A08', 'A13', 'B12', 'C01', 'C02', 'C04'],
      ['A02', 'A03', 'B04'],
    ],
    ['no limits', bots.noLimits, ['A10', 'A12', 'B09', 'C03', 'C04', 'C06'], ['A01', 'C05']],
    [
      'partial fills that are counted twice',
      bots.doubleCounts,
      ['A02', 'A14', 'B03', 'B04', 'B10', 'B12', 'C01'],
      ['A03', 'A06', 'C02'],
    ],
    ['orders that are sent twice', bots.resends, ['A01', 'A08', 'A14', 'A17'], ['A02', 'C01']],
    [
      'market halts that are ignored',
      bots.ignoresHalts,
      ['A07', 'A11', 'A12', 'B11'],
      ['A02', 'A17', 'C01'],
    ],
  ] as const),
)('a bot with %s fails the cases that test it', async (_what, bot, wrong, right) => {
  const expected = some(2, wrong);
  expect(await failed(bot, [...expected, ...some(1, right)])).toEqual(expected);
});

test('a bot with two instruments trades one while the other has no data', async () => {
  const { cases } = await runConformance(bots.twoInstruments, {
    seed: SEED,
    cases: ['A02', 'B08', 'B11'],
  });
  expect(cases.map(({ status, reason }) => [status, reason])).toEqual([
    ['pass', null],
    ['pass', null],
    ['pass', null],
  ]);
});

test('repeated execution is played up to its limit, regardless of the timeframe', async () => {
  const lines: string[] = [];
  const tried = async (repeated_execution: object | undefined) => {
    const { bot } = bots.correct;
    const { spec } = bot.spec;
    const { repeated_execution: _own, ...others } = spec.risk!;
    const risk = { ...others, ...(repeated_execution && { repeated_execution }) };
    const other = { bot: { ...bot, spec: { ...bot.spec, spec: { ...spec, risk } } } } as TriedBot;
    const onEvidence = (line: string): void => void lines.push(line);
    const { cases } = await runConformance(other, { seed: SEED, cases: ['C03'], onEvidence });
    return `${cases[0]!.status} ${cases[0]!.reason}`;
  };
  expect(await tried({ count: 10, seconds: 60 })).toBe('pass null');
  expect(lines.join('\n')).toContain(
    '"check":"the bot is disabled after 10 executions within 60 s","holds":true',
  );
  expect(await tried({ count: 5000, seconds: 60 })).toMatch(/^inconclusive .*5000 executions/);
  lines.length = 0;
  expect(await tried(undefined)).toMatch(
    /^fail .*expected: the bot has a limit on .*; seen: none \(set spec\.risk\.repeated_execution\)/,
  );
  expect(lines.join('\n')).not.toMatch(/restart|undefined/);
});

test('a conformance test restores all clocks', async () => {
  const clocks = (): unknown[] => [
    Object.getOwnPropertyDescriptors(Date),
    Object.getOwnPropertyDescriptors(performance),
    Object.getOwnPropertyDescriptor(Math, 'random'),
    setTimeout,
    setInterval,
    setImmediate,
    clearTimeout,
  ];
  const before = clocks();
  await runConformance(bots.correct, { seed: SEED, cases: ['A03'] });
  expect(clocks()).toEqual(before);
  await new Promise((resolve) => setTimeout(resolve, 1));
});

test('a bot that cannot be deployed is not tested', async () => {
  const { bot } = bots.correct;
  const { spec } = bot.spec;
  const margin = { model: 'margin', initial: 1, maintenance: 0.5 } as const;
  const engine = { ...spec.engine, account: margin };
  const other = { bot: { ...bot, spec: { ...bot.spec, spec: { ...spec, engine } } } };
  const { cases } = await runConformance(other, { seed: SEED, cases: ['A01'] });
  expect(cases[0]).toMatchObject({ status: 'not_applicable', evidence_hash: null });
});
