import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { testInThread } from '../../../src/compliance/tests/thread.ts';
import { EXAMPLES } from '../../bots/example-bots.ts';
import { HISTORY } from './fixtures.ts';

test('the stress test of paper.yaml is inconclusive on a host that is kept busy', async () => {
  const busy = "require('node:worker_threads').parentPort.postMessage(1); for (;;);";
  const threads = Array.from(
    { length: availableParallelism() },
    () => new Worker(busy, { eval: true }),
  );
  onTestFinished(async () => void (await Promise.all(threads.map((thread) => thread.terminate()))));
  await Promise.all(threads.map((thread) => once(thread, 'message')));
  const work = {
    kind: 'stress',
    document: parse(readFileSync(join(EXAMPLES, 'paper.yaml'), 'utf8')) as unknown,
    files: undefined,
    seed: 1,
    scope: 'bot',
    duration_s: 60,
    multiplier: 2,
    history: HISTORY,
    directory: tmpdir(),
  } as const;
  const result = await testInThread(work, new AbortController().signal, () => {});
  expect(result.reasons[0]).toMatch(/^inconclusive, the host was busy: /);
  expect(result.verdict).toBe('inconclusive');
  expect(result.host.withheld_ms).toBeGreaterThan(0.5 * result.host.real_ms);
});
