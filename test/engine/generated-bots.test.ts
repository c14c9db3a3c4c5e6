import { expect, it } from 'vitest';
import { eventLines } from '../../src/engine/event-lines.ts';
import type { OrderEvent } from '../../src/engine/journal.ts';
import { ORDER_REASONS, ORDER_TYPES, TIMES_IN_FORCE } from '../../src/engine/orders/order.ts';
import { hashOf, linesOf, recordedHashes, runBot } from './bot-runs.ts';
import { isAtLength } from '../length.ts';
import { generatedBots } from './generated-bots.ts';
import { REPLY_KINDS } from './simulated-venue.ts';

const EVENT_KINDS = Object.keys({
  'order.submitted': 0,
  'order.filled': 0,
  'order.triggered': 0,
  'order.canceled': 0,
  'order.expired': 0,
  'order.rejected': 0,
  'order.denied': 0,
  'order.pending_cancel': 0,
  'order.fee': 0,
  'order.corrected': 0,
  'account.margin_call': 0,
  'account.latched': 0,
} satisfies Record<OrderEvent['kind'], 0>);

const SETTINGS = [
  'venue',
  'cash',
  'margin',
  'whole',
  'fractional',
  'fees none',
  'fees percent',
  'fees per_share',
  'slippage none',
  'slippage basis_points',
  'slippage volume_share',
];

/** In `npm test`, every fourth bot runs. */
const DISTANCE = isAtLength ? 1 : 4;
const isTried = (_: unknown, number: number): boolean => number % DISTANCE === 0;

const bots = generatedBots().filter(isTried);
const runs = bots.map(runBot);

it('runs generated bots with the recorded events, equity and trades', () => {
  const recorded = recordedHashes().filter(isTried);
  expect(recorded).toHaveLength(runs.length);
  const changed = runs.flatMap((run, index) =>
    hashOf(linesOf(run)) === recorded[index] ? [] : [index * DISTANCE],
  );
  expect(
    changed.length,
    `${changed.length} bots run differently; the first is ${changed[0]}. To see its first difference, run
  node test/engine/bot-runs.ts ${changed[0]}
here and at the commit of git log -1 -- test/engine/generated-bots.txt, and compare the output.
If the change is intended, record it: node test/engine/bot-runs.ts --record`,
  ).toBe(0);
});

it('writes each event as JSON.stringify does', () => {
  for (const { engine } of runs) {
    const { journal } = engine.result();
    const lines = [...journal.events()].map((event) => `${JSON.stringify(event)}\n`);
    expect([...eventLines(journal)]).toEqual(lines);
  }
});

it.runIf(isAtLength)(
  'covers every type of order and event, every reason, and every kind of reply of a venue',
  () => {
    const counts = new Map<string, number>();
    const count = (key: string, by = 1): unknown => counts.set(key, (counts.get(key) ?? 0) + by);
    for (const [index, { engine, venue }] of runs.entries()) {
      const { account, fees, fill, slippage, units } = bots[index]!.config;
      const { journal, ambiguousBars, ruinedAt } = engine.result();
      const types = new Map<number, string>();
      for (const event of journal.events()) {
        count(event.kind);
        if ('reason' in event) count(event.reason);
        if (event.kind === 'order.submitted') {
          types.set(event.order, `${event.type} ${event.time_in_force}`);
          if (event.parent !== undefined) count('exit submitted');
        }
        if (event.kind === 'order.filled') {
          count(`${types.get(event.order)} filled`);
          const settings = [venue ? 'venue' : fill!.model, account!.model, units];
          for (const setting of [
            ...settings,
            `fees ${fees!.model}`,
            `slippage ${slippage!.model}`,
          ]) {
            count(`filled with ${setting}`);
          }
        }
      }
      count('permit used', engine.risk.permits.used.length);
      if (ambiguousBars > 0) count(`ambiguous ${fill!.model}`);
      if (ruinedAt !== undefined) count('ruined');
      for (const [kind, reports] of Object.entries(venue?.counts ?? {})) {
        count(`reply ${kind}`, reports);
      }
    }
    const models = ['next_open', 'ohlc_path', 'volume_share'];
    const expected = [
      ...EVENT_KINDS,
      ...ORDER_REASONS.filter((reason) => reason !== 'run_ended'),
      ...ORDER_TYPES.flatMap((type) => TIMES_IN_FORCE.map((time) => `${type} ${time} filled`)),
      ...[...models, ...SETTINGS].map((setting) => `filled with ${setting}`),
      ...models.map((model) => `ambiguous ${model}`),
      ...REPLY_KINDS.map((kind) => `reply ${kind}`),
      'exit submitted',
      'permit used',
      'ruined',
    ];
    expect(expected.filter((key) => (counts.get(key) ?? 0) < 3)).toEqual([]);
  },
);

it('closing out leaves no position and no working order, and the equity is the cash', () => {
  const ended = bots
    .slice(0, 150)
    .map(runBot)
    .filter(({ venue }) => venue === undefined);
  const held = ended.filter(({ engine }) => engine.result().openTrades.length > 0);
  expect(held.length).toBeGreaterThan(20);
  for (const { engine } of ended) {
    const before = engine.result();
    if (before.steps === 0) continue;
    const { trades, openTrades, orders } = before;
    const closed = trades.length + openTrades.length;
    engine.closeOut();
    const after = engine.result();
    expect(after.positions).toEqual({});
    expect(after.trades).toHaveLength(closed);
    expect(after.equity.at(-1)).toBe(after.cash);
    expect(after.orders.working).toBe(0);
    expect(after.orders.canceled).toBe(orders.canceled + orders.working);
  }
});
