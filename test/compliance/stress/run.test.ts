import { expect, test } from 'vitest';
import { article } from '../../../src/compliance/articles.ts';
import { engineConfig } from '../../../src/bots/spec.ts';
import type { TriedBot } from '../../../src/compliance/conformance/tried-session.ts';
import type { History } from '../../../src/compliance/stress/history.ts';
import { planStress } from '../../../src/compliance/stress/stress-plan.ts';
import { trySafeguard } from '../../../src/compliance/stress/safeguards.ts';
import { judge } from '../../../src/compliance/stress/judge.ts';
import { openMeters } from '../../../src/compliance/stress/meters.ts';
import type { PassResult } from '../../../src/compliance/stress/pass.ts';
import { runStress, type StressResult } from '../../../src/compliance/stress/run.ts';
import { planSchedule } from '../../../src/compliance/stress/load-schedule.ts';
import { computePercentiles, computeSlope } from '../../../src/compliance/stress/samples.ts';
import * as bots from '../bots/bots.ts';
import { busyHistory, HISTORY, idleMeters, minuteSpec, planFor } from './fixtures.ts';
import { isAtLength } from '../../length.ts';

const NOTHING = { passes: [], controls: [], log_on_disk: null };
const SHORT = { seed: 7, holdBars: 2, mostMessages: 60, steps: 1 };

test.runIf(isAtLength)(
  'a correct bot passes at twice its peaks, with all limits and without the message limit',
  async () => {
    const plan = planFor(busyHistory(4), bots.correct);
    expect(plan.basis).toBe('observed_full');
    expect(plan.messages.map(({ count }) => count)).toEqual([12, 12, 48, 12, 12, 48, 2, 2, 8]);
    const result = await runStress(bots.correct, busyHistory(4), plan, {
      ...SHORT,
      meters: idleMeters(),
    });
    expect(result.reasons).toEqual([]);
    expect(result).toMatchObject({ verdict: 'pass', schema: 'stress/1', basis: 'observed_full' });
    // Too few messages to measure memory growth.
    expect(result.not_judged).toContainEqual(
      expect.stringMatching(/limits lifted: whether memory grows/),
    );

    const [on, lifted] = result.passes as [PassResult, PassResult];
    // Two of ten messages per second are kept for cancels.
    expect(on.limiter).toMatchObject({ limit: 10, missed: 0, false_blocks: 0 });
    expect(on.limiter.offered).toBeGreaterThan(0);
    expect(on.limiter.caught).toBe(on.limiter.offered);
    expect(lifted.limiter.limit).toBe(null);
    expect(lifted.lifted).toContain('max_messages_per_second');
    expect(lifted.orders.denied).toBe(0);
    expect([on.drops, lifted.drops]).toEqual([0, 0]);
    expect(lifted.reached.every(({ is_reached }) => is_reached)).toBe(true);
    expect(lifted.volume.every(({ is_reached }) => is_reached)).toBe(true);
    expect(result.controls.map(({ id, status }) => [id, status])).toEqual(
      [
        'kill',
        'limits',
        'collar_period',
        'reserve',
        'repetition',
        'throttle',
        'market',
        'reconciliation',
        'alerts',
        'surveillance',
        'shutdown',
      ].map((id) => [id, 'pass']),
    );
    expect(result.controls.find(({ id }) => id === 'limits')?.measured).toEqual({
      offered: 3,
      caught: 3,
      missed: 0,
    });
    for (const { articles } of result.controls) for (const one of articles) article(one);
  },
);

/** History of several bots that trade two instruments. */
const firm = (): History => {
  const mix = [
    { kind: 'order.submitted', instrument: 'SPX', count: 2 },
    { kind: 'order.submitted', instrument: 'NDX', count: 4 },
    { kind: 'order.canceled', instrument: 'NDX', count: 3 },
  ];
  const moment = { peak_ts: null, instruments: ['NDX', 'SPX'] };
  const { production, ...others } = busyHistory(6);
  const amounts = { fills: [null, 3], value: ['USD', 900], quantity: ['NDX', 12] } as const;
  return {
    ...others,
    scope: 'firm',
    production: {
      messages: production.messages.map((peak) => ({ ...peak, ...moment, mix })),
      volume: Object.entries(amounts).flatMap(([measure, [of, M]]) =>
        ([1, 60, 86_400] as const).map((window_s) => ({
          measure: measure as keyof typeof amounts,
          of,
          window_s,
          M: window_s === 86_400 ? 3 * M : M,
          ...moment,
        })),
      ),
    },
  };
};

test.runIf(isAtLength)(
  'a firm test offers the load of all bots and gives the same evidence on any machine',
  async () => {
    const history = firm();
    const plan = planFor(history, bots.correct);
    const run = async (seed: number, tick: number) => {
      let now = 0;
      const meters = { ...idleMeters(), now: () => (now += tick), rss: () => 1e6 + now };
      const options = { ...SHORT, holdBars: 1, mostMessages: 40, seed, meters };
      return runStress(bots.correct, history, plan, options);
    };
    const result = await run(7, 0.01);
    expect(result).toMatchObject({ scope: 'firm', verdict: 'pass', reasons: [] });
    expect(result.coverage.not_covered.join()).toMatch(/sessions of several bots/);
    const [on, lifted] = result.passes as [PassResult, PassResult];
    expect(on.lifted.join()).toMatch(
      /universe: the 2 instruments of all bots, including 1 of this bot/,
    );
    expect(lifted.volume.map(({ target, is_reached }) => [target, is_reached])).toEqual(
      [6, 6, 18, 1800, 1800, 5400, 24, 24, 72].map((target) => [target, true]),
    );
    expect(lifted.log.generated).toBeGreaterThan(0);
    expect(lifted.log.persisted).toBe(lifted.log.generated);
    expect(result.log_on_disk?.generated).toBeGreaterThan(0);
    expect(result.log_on_disk?.persisted).toBe(result.log_on_disk?.generated);

    const hashesOf = ({ passes, evidence_hash }: StressResult) => [
      evidence_hash,
      ...passes.flatMap((pass) => [pass.schedule_hash, pass.evidence_hash]),
    ];
    const slower = await run(7, 3);
    expect(slower.passes[1]?.queue.drain_max_ms).not.toBe(lifted.queue.drain_max_ms);
    expect(hashesOf(slower)).toEqual(hashesOf(result));
    expect(hashesOf(result)).not.toContain(null);
  },
);

test('the schedule keeps the mix of the peak and reaches the volume and messages of a day', () => {
  const history = firm();
  const symbols = ['SPX', 'NDX'];
  const sizes = { price: 100, quantity: 2, unit: 0.5, below: 99, above: 101 };
  const config = engineConfig(bots.correct.bot.spec);
  const options = { symbols, sizes, config, holdBars: 2, mostMessages: 1000 };
  const plan = planFor(history, bots.correct);
  const schedule = planSchedule(plan, options);
  const hold = schedule.find(({ phase }) => phase === 'hold')?.load;
  // Twice nine messages, a third of which are cancels in one instrument.
  expect(hold).toMatchObject({
    out: 18,
    cancels: 6,
    fills: 6,
    mix: {
      orders: [
        ['SPX', 2],
        ['NDX', 4],
      ],
      cancels: [
        ['SPX', 0],
        ['NDX', 3],
      ],
    },
  });
  const offered = schedule.reduce((sum, { load }) => sum + load.out, 0);
  expect(offered).toBeGreaterThanOrEqual(72);
  const lots = schedule.flatMap(({ load }) => load.lots ?? []);
  expect(lots.every(({ symbol, quantity }) => symbol === 'NDX' && quantity <= 2)).toBe(true);
  const traded = lots.reduce((sum, { orders, quantity }) => sum + orders * quantity, 0);
  expect(traded).toBeGreaterThanOrEqual(72);
  expect(lots.reduce((sum, { orders }) => sum + orders, 0)).toBeGreaterThanOrEqual(18);
});

test.runIf(isAtLength)(
  'a stress test on a slow machine fails and names the missed target',
  async () => {
    let now = 0;
    const meters = { ...idleMeters(), now: () => (now += 500) };
    const plan = planFor(busyHistory(4), bots.correct);
    const result = await runStress(bots.correct, busyHistory(4), plan, { ...SHORT, meters });
    expect(result.verdict).toBe('fail');
    expect(result.reasons.join('\n')).toMatch(/the target was not reached: out in 1 s/);
    const second = result.passes[1]?.reached.find(
      (one) => one.class === 'out' && one.window_s === 1,
    );
    expect(second?.offered).toBeGreaterThan(second?.achieved ?? Infinity);
  },
);

test('a bot that ignores cancels fails the kill test, and a bot without limits fails the limit test', async () => {
  const load = { out: 12, cancels: 4, fills: 4, trades: 2 };
  const resultOf = (id: 'kill' | 'limits', bot: TriedBot) =>
    trySafeguard(id, { own: bot, lifted: bot, latching: bot }, 7, load, idleMeters());
  expect(await resultOf('kill', bots.brokenKill)).toMatchObject({
    status: 'fail',
    reason: expect.stringMatching(/no order is left open/),
  });
  expect(await resultOf('limits', bots.noLimits)).toMatchObject({
    status: 'fail',
    reason: expect.stringMatching(
      /^expected: limits on price, value and volume are set; seen: none \(set spec/,
    ),
  });
});

test('a load above the maximum of a test is rejected', async () => {
  const options = { ...SHORT, meters: idleMeters() };
  const refused = { code: 'invalid_request', reason: 'too_much_load' };
  for (const plan of [
    planStress(HISTORY, minuteSpec(bots.correct), { declaredPeak: 1e12 }),
    planStress(HISTORY, minuteSpec(bots.correct, { max_messages_per_second: 1e9 })),
    planStress(busyHistory(1000), minuteSpec(bots.correct), { multiplier: 100 }),
    {
      ...planFor(busyHistory(4), bots.correct),
      volume: [{ measure: 'quantity', of: 'SPX', window_s: 60, amount: 1e15 }] as const,
    },
  ]) {
    await expect(runStress(bots.correct, HISTORY, plan, options)).rejects.toMatchObject(refused);
  }
  const load = { out: 12, cancels: 4, fills: 4, trades: 2 };
  const { bot } = bots.correct;
  const often = { ...bot.spec.spec.risk, repeated_execution: { count: 1e9, seconds: 60 } };
  const spec = { ...bot.spec, spec: { ...bot.spec.spec, risk: often } };
  const tried = { ...bots.correct, bot: { ...bot, spec } };
  const tries = { own: tried, lifted: tried, latching: tried };
  const repetition = await trySafeguard('repetition', tries, 7, load, idleMeters());
  expect(repetition).toMatchObject({ status: 'fail' });
});

test('a test without full production history states its assumption and never passes', () => {
  const plan = planFor(HISTORY, bots.correct);
  expect(plan.basis).toBe('assumed');
  expect(plan.messages.slice(0, 3).map(({ count }) => count)).toEqual([1000, 1000, 28_800]);
  expect(plan.assumption).toMatchObject({ floor: 1000, owner: null });
  expect(plan.assumption?.candidates.map(({ source, counts }) => [source, ...counts])).toEqual([
    ['paper_peak', 0, 0, 0],
    ['order_limits', 2, 2, 2880],
    ['message_limit', 10, 10, 14_400],
  ]);
  const { verdict, reasons } = judge(plan, NOTHING);
  expect(verdict).not.toBe('pass');
  expect(reasons.join('\n')).toContain('There is no production history');
  const half = { ...busyHistory(4), since: '2026-04-01T00:00:00.000Z', coverage_days: 95 };
  expect(planFor(half, bots.correct)).toMatchObject({
    basis: 'observed_partial',
    provisional: ['the log covers only 95 of 181 days of production'],
  });
  const gaps = [{ bot_id: 'b', why: 'data_gap', count: 2, first: 'T' }] as const;
  expect(judge(planFor({ ...busyHistory(4), gaps }, bots.correct), NOTHING).verdict).not.toBe(
    'pass',
  );
});

test('a stress test without results fails', () => {
  const plan = planFor(busyHistory(4), bots.correct);
  expect(judge(plan, NOTHING)).toMatchObject({ verdict: 'fail' });
});

test.runIf(isAtLength)('meters measure time, processor use and memory of this thread', () => {
  const meters = openMeters();
  const [begun, used] = [meters.now(), meters.cpu()];
  const gc = meters.gc();
  expect(meters.rss()).toBeGreaterThan(meters.heap());
  expect(meters.now()).toBeGreaterThanOrEqual(begun);
  expect(meters.cpu()).toBeGreaterThanOrEqual(used);
  expect(gc.longest).toBeLessThanOrEqual(gc.total);
  meters.close();
});

test('percentiles and slopes are null with too few samples', () => {
  const all = Array.from({ length: 999 }, (_, at) => at + 1);
  expect(computePercentiles(all)).toEqual({
    samples: 999,
    p50: 500,
    p95: 950,
    p99: 990,
    p999: null,
    max: 999,
  });
  expect(computePercentiles([...all, 1000]).p999).toBe(999);
  expect(computePercentiles([3])).toEqual({
    samples: 1,
    p50: 3,
    p95: null,
    p99: null,
    p999: null,
    max: 3,
  });
  expect(
    computeSlope([
      [0, 1],
      [1, 3],
      [2, 5],
    ]),
  ).toBe(2);
  expect(
    computeSlope([
      [0, 1],
      [1, 3],
    ]),
  ).toBe(null);
});
