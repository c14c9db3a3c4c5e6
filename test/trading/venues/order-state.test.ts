import { describe, expect, it } from 'vitest';
import {
  decide,
  evolve,
  initialState,
  isRelevant,
  type OrderEvent,
  type OrderState,
  type SendFailure,
} from '../../../src/trading/venues/order-state.ts';

const ORDER = { order: 1, client_order_id: 'a-1', symbol: 'BTC/USDT' };
const OPENED = 100;
const SETTLES = 500;

/** State after the events; each request that they mention has arrived or expired at `SETTLES`. */
function after(...events: readonly OrderEvent[]): OrderState {
  return events.reduce(
    (state, event) => evolve(state, event, SETTLES),
    initialState(ORDER, OPENED),
  );
}

const BEGUN = { kind: 'placement_begun' } as const;
const SENDING = { kind: 'sending' } as const;
const WITHDRAWN = { kind: 'withdrawn' } as const;
const failed = (failure: SendFailure): OrderEvent => ({ kind: 'send_failed', failure });
const DOUBT = failed({ kind: 'in_doubt', error: 'lost' });
const LIMITED = failed({ kind: 'limited', error: 'too many' });
const rejected = (isCertain: boolean): OrderEvent =>
  failed({ kind: 'rejected', reason: 'why', isCertain });

describe('an order that a query did not find', () => {
  it.each<[string, readonly OrderEvent[], number, ReturnType<typeof decide>]>([
    [
      'is queried again while an earlier process may have sent it',
      [BEGUN],
      99,
      { kind: 'query', afterMs: 1 },
    ],
    ['is sent once no earlier process can have sent it', [BEGUN], 100, { kind: 'send' }],
    ['is missing if it is not being placed', [], 100, { kind: 'missing' }],
    [
      'is queried again while its lost request may arrive',
      [BEGUN, SENDING, DOUBT],
      499,
      { kind: 'query', afterMs: 1 },
    ],
    [
      'is sent again once its lost request cannot arrive',
      [BEGUN, SENDING, DOUBT],
      500,
      { kind: 'send' },
    ],
    ['is sent again at once after a rate limit', [BEGUN, SENDING, LIMITED], 100, { kind: 'send' }],
    [
      'is sent three times at most',
      [BEGUN, SENDING, LIMITED, SENDING, DOUBT, SENDING, DOUBT],
      500,
      { kind: 'fail', error: 'lost' },
    ],
    [
      'is rejected at once for a known reason',
      [BEGUN, SENDING, rejected(true)],
      100,
      { kind: 'rejected', reason: 'why' },
    ],
    [
      'is queried again after an unknown rejection',
      [BEGUN, SENDING, rejected(false)],
      499,
      { kind: 'query', afterMs: 1 },
    ],
    [
      'is rejected once it cannot appear after an unknown rejection',
      [BEGUN, SENDING, rejected(false)],
      500,
      { kind: 'rejected', reason: 'why' },
    ],
    [
      'is queried again soon after it was visible',
      [{ kind: 'reported', isOpen: true }],
      499,
      { kind: 'query', afterMs: 1 },
    ],
    ['is not sent after a cancel', [WITHDRAWN, BEGUN], 100, { kind: 'missing' }],
    [
      'is not sent again after a cancel during its placement',
      [BEGUN, SENDING, LIMITED, WITHDRAWN],
      100,
      { kind: 'missing' },
    ],
    [
      'is not sent again after a confirmed cancel during its placement',
      [BEGUN, SENDING, DOUBT, WITHDRAWN, { kind: 'cancel_confirmed' }],
      500,
      { kind: 'missing' },
    ],
    [
      'is rejected although it was also canceled',
      [BEGUN, SENDING, rejected(true), WITHDRAWN],
      100,
      { kind: 'rejected', reason: 'why' },
    ],
  ])('%s', (_, events, askedAt, step) => {
    expect(decide(after(...events), askedAt)).toEqual(step);
  });
});

describe('an order counts as working', () => {
  it.each<[string, readonly OrderEvent[], boolean]>([
    ['not before it is sent', [BEGUN], false],
    ['from the moment that it is sent', [BEGUN, SENDING], true],
    ['while its outcome is in doubt', [BEGUN, SENDING, DOUBT], true],
    ['not if it could not leave this process', [BEGUN, SENDING, { kind: 'not_sent' }], false],
    ['while the exchange reports it as open', [{ kind: 'reported', isOpen: true }], true],
    ['not after its end', [{ kind: 'listed' }, { kind: 'reported', isOpen: false }], false],
    ['if the exchange lists it', [{ kind: 'listed' }], true],
    ['not once it is missing', [{ kind: 'listed' }, { kind: 'missing' }], false],
  ])('%s', (_, events, isWorking) => {
    expect(after(...events).isWorking).toBe(isWorking);
  });
});

it('an order is remembered while it matters: working, withdrawn, being placed, or not settled', () => {
  const ended = after({ kind: 'reported', isOpen: false });
  expect(isRelevant(ended, SETTLES - 1)).toBe(true);
  expect(isRelevant(ended, SETTLES)).toBe(false);
  for (const state of [after(BEGUN), after(WITHDRAWN), after({ kind: 'listed' })]) {
    expect(isRelevant(state, SETTLES)).toBe(true);
  }
  const over = after(BEGUN, WITHDRAWN, { kind: 'placement_ended' }, { kind: 'cancel_confirmed' });
  expect(isRelevant(over, SETTLES)).toBe(false);
});
