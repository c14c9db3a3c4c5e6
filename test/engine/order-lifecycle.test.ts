import { expect, test } from 'vitest';
import { createOrder } from '../../src/engine/orders/create-order.ts';
import { decide, evolve } from '../../src/engine/orders/order-lifecycle.ts';
import type { OrderCommand } from '../../src/engine/orders/order-lifecycle.ts';
import type { OrderStatus } from '../../src/engine/orders/order.ts';
import type { WorkingOrder } from '../../src/engine/orders/working-order.ts';
import { Instrument } from '../../src/engine/instrument.ts';
import { bars, flat } from './market.ts';

const TRIGGER: OrderCommand = { kind: 'trigger' };
const CANCEL: OrderCommand = { kind: 'cancel', reason: 'halted', isAtVenue: false };
const ASK: OrderCommand = { kind: 'cancel', reason: 'halted', isAtVenue: true };
const EXPIRE: OrderCommand = { kind: 'end', status: 'expired', reason: 'day_ended' };
const COMPLETE: OrderCommand = { kind: 'complete', isReported: false };
const REPORTED: OrderCommand = { kind: 'complete', isReported: true };
const COMMANDS = [TRIGGER, CANCEL, ASK, EXPIRE, COMPLETE, REPORTED];

const ENDED: readonly OrderStatus[] = ['filled', 'canceled', 'expired', 'rejected', 'denied'];

const STATES = {
  new: {},
  triggered: { triggered: true },
  'being canceled': { pendingCancel: 'canceled_by_strategy' },
  'partly filled': { filled: 4 },
  'completely filled': { filled: 10 },
} as const satisfies Record<string, Partial<WorkingOrder>>;

/** Kinds of change by command, in the order of `COMMANDS`; a dash for none. */
const CHANGES = {
  new: 'triggered ended pending_cancel ended - completed',
  triggered: '- ended pending_cancel ended - completed',
  'being canceled': 'triggered ended - ended - completed',
  'partly filled': 'triggered ended pending_cancel ended - completed',
  'completely filled': 'triggered ended pending_cancel ended completed completed',
} as const satisfies Record<keyof typeof STATES, string>;

function order(fields: Partial<WorkingOrder>): WorkingOrder {
  const instrument = new Instrument('X', 0, bars(flat(1)));
  const request = { instrument, side: 'buy', quantity: 10, type: 'stop', stop: 110 } as const;
  return { ...createOrder(1, 'fractional', request), ...fields };
}

test.each(Object.keys(STATES) as (keyof typeof STATES)[])(
  'every command has the expected effect on an order that is %s',
  (state) => {
    const kinds = COMMANDS.map((command) => decide(order(STATES[state]), command)?.kind ?? '-');
    expect(kinds.join(' ')).toBe(CHANGES[state]);
  },
);

test.each(ENDED)('no command changes an order that is %s', (status) => {
  const changes = COMMANDS.map((command) => decide(order({ status }), command));
  expect(changes).toEqual(COMMANDS.map(() => undefined));
});

test('a change that was applied is not decided again', () => {
  for (const command of [TRIGGER, CANCEL, ASK, EXPIRE, REPORTED]) {
    const changed = order({});
    evolve(changed, decide(changed, command)!);
    expect(decide(changed, command), command.kind).toBeUndefined();
  }
});

test('an order keeps the reason of its first cancel request', () => {
  const canceled = order({});
  evolve(canceled, decide(canceled, ASK)!);
  const again = decide(canceled, { ...ASK, reason: 'margin_call' });
  expect([canceled.pendingCancel, canceled.status, again]).toEqual([
    'halted',
    'working',
    undefined,
  ]);
});
