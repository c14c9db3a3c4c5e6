import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { loadBot } from '../../src/bots/load-bot.ts';
import { findLimitGaps } from '../../src/compliance/report/reported-limits.ts';
import { runStress } from '../../src/compliance/stress/run.ts';
import { EXAMPLES } from '../bots/example-bots.ts';
import { busyHistory, idleMeters, planFor } from './stress/fixtures.ts';
import { isAtLength } from '../length.ts';

const PAPER = join(EXAMPLES, 'paper.yaml');

test('paper.yaml sets every limit that a validation report requires', () => {
  const document: unknown = parse(readFileSync(PAPER, 'utf8'));
  const gaps = findLimitGaps({ document } as never);
  expect(gaps.map(({ missing }) => missing)).toEqual([]);
});

test.runIf(isAtLength)('paper.yaml passes the stress test', async () => {
  const tried = { bot: loadBot(PAPER) };
  const history = busyHistory(4);
  const plan = planFor(history, tried);
  const options = { seed: 7, holdBars: 2, mostMessages: 60, steps: 1, meters: idleMeters() };
  expect(await runStress(tried, history, plan, options)).toMatchObject({
    verdict: 'pass',
    reasons: [],
  });
});
