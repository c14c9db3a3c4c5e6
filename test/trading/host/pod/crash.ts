/** A runner that is killed at random moments, again and again, and what must be so in the end. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { seededRandom } from '../../../../src/engine/random.ts';
import { stateHash } from '../../../../src/events/session-state.ts';
import { BTC, ACTS } from './world.ts';
import { newScript, unavailable, until, type Life } from './scripted.ts';

const BARS = 12;
const MOST_MOMENTS = 60;

/** @returns how often it was killed before it had taken all bars. */
export async function crash(seed: number, lives: number): Promise<number> {
  const random = seededRandom(seed);
  const below = (count: number): number => Math.floor(random() * count);
  const script = await newScript();
  const acts = [ACTS.buy, ACTS.limit, ACTS.sell, 100, 99, ACTS.limit];
  for (let i = 0; i < BARS; i += 1) script.closes.push(acts[below(acts.length)]!);
  let kills = 0;
  let life: Life | undefined;
  for (let count = 0; count <= lives; count += 1) {
    const isLast = count === lives;
    const died = Promise.withResolvers<void>();
    let left = isLast ? Infinity : 1 + below(MOST_MOMENTS);
    script.moment = async (what, when) => {
      left -= 1;
      if (left === 0) {
        kills += 1;
        died.resolve();
        // It waits for this moment to be over.
        void life?.kill();
      }
      for (let turns = below(3); turns > 0; turns -= 1) await nextTurn();
      if (what === 'place' && below(8) === 0) throw unavailable();
      if (what === 'append' && when === 'after' && below(4) === 0) script.fillOne();
    };
    life = await script.start({ freshForMs: Infinity, cancelWithinMs: isLast ? 5000 : 0 });
    const current = life;
    if (isLast) break;
    await Promise.race([died.promise, until(() => current.hasTakenAll())]);
    await current.kill();
  }
  const last = life!;
  await until(() => last.hasTakenAll());
  last.stop();
  const end = await last.done;
  assert(end.verified, `not verified:\n${last.log.join('\n')}`);
  assert.deepEqual(script.wrongs, []);
  const made = [...script.orders.values()];
  assert(made.every(({ status }) => status !== 'open'));
  const state = end.state!;
  assert.deepEqual(state.working, []);
  assert.equal(state.positions[BTC] ?? 0, script.holdings.units);
  assert.equal(state.cash, script.holdings.cash);
  const reported = [...script.batches.values()].flatMap(({ events }) => events);
  const numbersOf = (...kinds: readonly string[]): readonly number[] =>
    reported
      .filter(({ kind }) => kinds.includes(kind))
      .map(({ payload }) => (payload as { readonly order: number }).order);
  const submitted = numbersOf('order.submitted');
  assert.equal(new Set(submitted).size, submitted.length, 'an order was made twice');
  const ended = new Set(numbersOf('order.filled', 'order.canceled', 'order.rejected'));
  for (const { order } of made) assert(submitted.includes(order) && ended.has(order));
  assert.equal(reported.filter(({ kind }) => kind === 'data.bars').length, BARS);
  await last.kill();
  assert.equal(stateHash(await script.replayed()), stateHash(state));
  return kills;
}
