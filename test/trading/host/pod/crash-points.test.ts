import assert from 'node:assert/strict';
import { expect, test } from 'vitest';
import { stateHash } from '../../../../src/events/session-state.ts';
import { isAtLength } from '../../../length.ts';
import { newScript, until, type Life, type Script } from './scripted.ts';
import { ACTS, BTC } from './world.ts';

/** Durable writes of the journal of a runner. */
const WRITES: ReadonlySet<string> = new Set(['append', 'keepRules', 'keepEnd', 'nextBatch']);
const CLOSES = [ACTS.buy, ACTS.limit, ACTS.sell];

interface Point {
  readonly what: string;
  readonly count: number;
  readonly when: 'before' | 'after';
}

/** Trades until the end for good, and crashes at this point if it is reached. @returns whether. */
async function play(point: Point | undefined, onWrite: (what: string) => void): Promise<boolean> {
  const script = await newScript();
  script.closes.push(...CLOSES);
  const counts = new Map<string, number>();
  let crashed = false;
  let life: Life | undefined;
  script.moment = async (what, when) => {
    if (!WRITES.has(what)) return;
    if (when === 'before') {
      counts.set(what, (counts.get(what) ?? 0) + 1);
      onWrite(what);
    }
    const isPoint = point?.what === what && point.count === counts.get(what) && point.when === when;
    if (crashed || !isPoint) return;
    crashed = true;
    void life?.kill();
  };
  life = await trade(script, (its) => (life = its));
  if (crashed) {
    await life.kill();
    life = await trade(script, (its) => (life = its));
  }
  await check(script, life);
  return crashed;
}

/** Starts a runner, halts it once all bars are taken, and waits for its end. */
async function trade(script: Script, onStart: (life: Life) => void): Promise<Life> {
  script.command = 'trade';
  const life = await script.start({ freshForMs: Infinity, cancelWithinMs: 2000 });
  onStart(life);
  let isOver = false;
  void life.done.then(
    () => (isOver = true),
    () => (isOver = true),
  );
  await until(() => isOver || life.hasTakenAll());
  script.command = 'halt';
  await until(() => isOver);
  return life;
}

async function check(script: Script, life: Life): Promise<void> {
  const end = await life.done;
  expect(script.wrongs).toEqual([]);
  expect(end).toMatchObject({ outcome: 'halted', verified: true });
  const made = [...script.orders.values()];
  assert(made.every(({ status }) => status !== 'open'));
  const state = end.state!;
  expect(state.working).toEqual([]);
  expect(state.positions[BTC] ?? 0).toBe(script.holdings.units);
  expect(state.cash).toBe(script.holdings.cash);
  await life.kill();
  expect(stateHash(await script.replayed())).toBe(stateHash(state));
}

test('a crash before or after a durable write loses no order and sends none twice', async () => {
  const counts = new Map<string, number>();
  await play(undefined, (what) => counts.set(what, (counts.get(what) ?? 0) + 1));
  expect([...counts.keys()].toSorted()).toEqual([...WRITES].toSorted());
  const points = [...counts].flatMap(([what, most]) =>
    Array.from({ length: Math.min(most, isAtLength ? 30 : 1) }, (_, i) => i + 1).flatMap((count) =>
      (['before', 'after'] as const).map((when) => ({ what, count, when })),
    ),
  );
  let crashes = 0;
  for (const point of points) if (await play(point, () => {})) crashes += 1;
  expect(crashes).toBeGreaterThan(points.length / 2);
});
