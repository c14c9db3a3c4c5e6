import { availableParallelism } from 'node:os';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { expect, onTestFinished, test } from 'vitest';
import type { TriedBot } from '../../../src/compliance/conformance/tried-session.ts';
import { inWorld } from '../../../src/compliance/conformance/world.ts';
import { trySafeguard } from '../../../src/compliance/stress/safeguards.ts';
import {
  mayBeByHost,
  openMeters,
  openSpan,
  type Meters,
} from '../../../src/compliance/stress/meters.ts';
import { runStress } from '../../../src/compliance/stress/run.ts';
import * as bots from '../bots/bots.ts';
import { busyHistory, planFor } from './fixtures.ts';
import { isAtLength } from '../../length.ts';

type Cause = 'computes' | 'waits' | 'is kept waiting' | 'computes and is kept waiting';

/** Creates a bot that needs `ms` for each order and cancel, on a machine where nothing else takes time. */
function slowBot(ms: number, cause: Cause): { readonly tried: TriedBot; readonly meters: Meters } {
  const clock = { now: 0, cpu: 0, withheld: 0 };
  const takeTime = (): void => {
    const isComputing = cause.startsWith('computes');
    const isWithheld = cause.endsWith('kept waiting');
    clock.now += isComputing && isWithheld ? 2 * ms : ms;
    if (isComputing) clock.cpu += ms;
    if (isWithheld) clock.withheld += ms;
  };
  const tried: TriedBot = {
    ...bots.correct,
    adapter: (venue) => ({
      ...venue,
      async place(order) {
        takeTime();
        return venue.place(order);
      },
      async cancel(request) {
        takeTime();
        return venue.cancel(request);
      },
    }),
  };
  const meters: Meters = {
    now: () => (clock.now += 0.01),
    cpu: () => clock.cpu,
    withheld: () => clock.withheld,
    slowdown: () => 1,
    rss: () => 1e6,
    heap: () => 1e6,
    gc: () => ({ total: 0, longest: 0 }),
  };
  return { tried, meters };
}

test.runIf(isAtLength).each<[Cause, string]>([
  ['waits', 'fail'],
  ['is kept waiting', 'inconclusive'],
  ['computes', 'fail'],
  ['computes and is kept waiting', 'fail'],
])('the kill test of a bot that %s for too long has the status %s', async (cause, status) => {
  const { tried, meters } = slowBot(400, cause);
  const load = { out: 8, cancels: 2, fills: 2, trades: 1 };
  const tries = { own: tried, lifted: tried, latching: tried };
  const kill = await trySafeguard('kill', tries, 7, load, meters);
  expect(kill).toMatchObject({ status, holds: true });
});

test.runIf(isAtLength).each<[Cause, string, RegExp]>([
  ['computes and is kept waiting', 'fail', /^the target was not reached: out in 1 s: \d+ of 12$/m],
  [
    'is kept waiting',
    'inconclusive',
    /^inconclusive, the host was busy: the target was not reached: out in 1 s: \d+ of 12, and 12 without/m,
  ],
])(
  'the stress test of a bot that misses its target because it %s has the verdict %s',
  async (cause, verdict, reason) => {
    const { tried, meters } = slowBot(400, cause);
    const history = busyHistory(4);
    const plan = planFor(history, tried);
    const options = { seed: 7, holdBars: 2, mostMessages: 60, steps: 1, meters };
    const result = await runStress(tried, history, plan, options);
    expect(result.reasons.join('\n')).toMatch(reason);
    expect(result.verdict).toBe(verdict);
    expect(result.host.withheld_ms).toBeGreaterThan(0);
    expect(result.headroom.broke_by).toBe(verdict === 'fail' ? 'slow' : 'host');
  },
);

test.each([
  ['is within the limit, but the wait for the host is not', 3000, 900, true],
  ['is above the limit, and the host withheld little', 1900, 1100, false],
  ['is up to twice the limit, and the host withheld most of the time', 3000, 1100, true],
  ['is more than twice the limit, although the host withheld most of the time', 9000, 2100, false],
])('a duration that %s', (_, ms, netMs, isByHost) => {
  expect(mayBeByHost(ms, netMs, 1000)).toBe(isByHost);
});

test('withheld time and a slower processor do not count against the bot', () => {
  const clock = { now: 0, withheld: 0 };
  const meters = { now: () => clock.now, cpu: () => 0, withheld: () => clock.withheld };
  const span = openSpan({ ...meters, slowdown: () => 1 });
  clock.now += 100;
  clock.withheld += 5;
  expect(span()).toEqual({ realMs: 100, withheldMs: 5, netMs: 95 });
  const slower = openSpan({ ...meters, slowdown: () => 2 });
  clock.now += 100;
  expect(slower()).toEqual({ realMs: 100, withheldMs: 0, netMs: 50 });
});

test.runIf(isAtLength)(
  'a test session continues after a bar that took the host more than a second',
  async () => {
    const never = new Int32Array(new SharedArrayBuffer(4));
    await inWorld(bots.correct, { seed: 7 }, async (world) => {
      await world.begin();
      world.exerciser.schedule(() => {
        Atomics.wait(never, 0, 0, 1100);
      });
      await world.bar();
      expect(world.end).toBeUndefined();
    });
  },
);

test.runIf(isAtLength)(
  'the host meter detects that a busy host withholds the processor',
  async () => {
    const threads = Array.from(
      { length: 2 * availableParallelism() },
      () =>
        new Worker("require('node:worker_threads').parentPort.postMessage(1); for (;;);", {
          eval: true,
        }),
    );
    onTestFinished(
      async () => void (await Promise.all(threads.map((thread) => thread.terminate()))),
    );
    await Promise.all(threads.map((thread) => once(thread, 'message')));
    const meters = openMeters();
    onTestFinished(() => meters.close());
    const span = openSpan(meters);
    for (const begun = meters.cpu(); meters.cpu() - begun < 100;);
    const { realMs, withheldMs, netMs } = span();
    expect(withheldMs).toBeGreaterThan(0.1 * realMs);
    expect(netMs).toBeLessThan(0.9 * realMs);
  },
);
