import { expect, test } from 'vitest';
import { defineStrategy } from '../../../src/engine/strategy.ts';
import { HostedSession } from '../../../src/trading/host/hosted-session.ts';
import type { SessionEvent } from '../../../src/trading/session-events.ts';
import { newLife } from '../../../src/trading/session-life.ts';
import { TradingSession } from '../../../src/trading/trading-session.ts';
import type { VenueRules } from '../../../src/trading/venue.ts';
import { DAY, ENGINE_DEFAULTS, START } from '../../engine/market.ts';

const reckless = defineStrategy({
  name: 'reckless',
  description: 'Buys twice what the account has, and leaves an order open.',
  params: {},
  create({ broker, instruments }) {
    const [instrument] = instruments as [(typeof instruments)[number]];
    let steps = 0;
    return {
      onBar() {
        steps += 1;
        if (steps > 1) return;
        broker.target(instrument, 2);
        broker.order({ instrument, side: 'buy', quantity: 1, type: 'limit', limit: 1 });
      },
    };
  },
});

/** Hosts a session that loses its account with the third bar, until it ends. */
async function hostRuin(failsWhenRuined: boolean) {
  const session = new TradingSession({
    symbols: ['X'],
    strategy: reckless,
    params: {},
    config: { ...ENGINE_DEFAULTS, account: { model: 'margin', initial: 0.1, maintenance: 0 } },
    timeoutMs: Infinity,
  });
  const written: SessionEvent[] = [];
  const newHost = () =>
    new HostedSession(newLife(false, 0), {
      observe: () => ({ isLicensed: true, isClaimFresh: true }),
      recordsHalts: true,
      failsWhenRuined,
      prepareWarmUp() {},
      prepareBars: async () => false,
      write: async ({ events }) => void written.push(...events),
    });
  const hosted = newHost();
  hosted.adopt(session);
  hosted.dispatch({ kind: 'feed_connected' });
  for (const [i, close] of [100, 100, 20, 20].entries()) {
    const bar = { open: 100, high: 100, low: close, close, volume: 1 };
    const step = { time: START + i * DAY, bars: { X: bar } };
    await hosted.takeFeedItem({ kind: 'data.bars', step });
  }
  await hosted.write();
  const restored = newHost();
  restored.adopt(session);
  return { lives: [hosted.life, restored.life], state: session.state(), written };
}

test('on paper, a lost account ends the session with its orders as they are', async () => {
  const { lives, state, written } = await hostRuin(false);
  for (const { ending } of lives) expect(ending).toMatchObject({ outcome: 'finished' });
  expect(state).toMatchObject({ status: 'ruined', working: [{ limit: 1 }] });
  expect(written.filter(({ kind }) => kind === 'data.bars')).toHaveLength(3);
});

test('in production, a lost account is a failure that cancels its orders', async () => {
  const { lives, state, written } = await hostRuin(true);
  for (const { ending } of lives) {
    expect(ending).toMatchObject({ outcome: 'failed', error: { reason: 'ruined' } });
  }
  expect(state).toMatchObject({ status: 'ruined', working: [] });
  expect(written.map(({ kind }) => kind)).toContain('control.halted');
});

const patient = defineStrategy({
  name: 'patient',
  description: 'Places a limit order at each bar.',
  params: {},
  create: ({ broker, instruments: [instrument] }) => ({
    onBar() {
      broker.order({ instrument, side: 'buy', quantity: 1, type: 'limit', limit: 90 });
    },
  }),
});

function newIdleHost(): HostedSession {
  return new HostedSession(newLife(false, 0), {
    observe: () => ({ isLicensed: true, isClaimFresh: true }),
    recordsHalts: true,
    failsWhenRuined: true,
    prepareWarmUp() {},
    prepareBars: async () => false,
    write: async () => {},
  });
}

test('an order whose instrument is halted is not sent, while others may be', async () => {
  const terms = { step: 1, min_quantity: 1, min_value: 0, tick: 1 };
  const rules: VenueRules = { types: ['limit'], instruments: { X: terms } };
  const session = new TradingSession({
    venue: { deployment_id: '01980000-0000-7000-8000-000000000001', rules },
    symbols: ['X'],
    strategy: patient,
    params: {},
    config: ENGINE_DEFAULTS,
    timeoutMs: Infinity,
  });
  const hosted = newIdleHost();
  hosted.adopt(session);
  hosted.dispatch({ kind: 'feed_connected' });
  const bar = { open: 100, high: 100, low: 100, close: 100, volume: 1 };
  await hosted.takeFeedItem({ kind: 'data.bars', step: { time: START, bars: { X: bar } } });
  const [order] = session.outbox().flatMap((one) => ('place' in one ? [one.place] : []));
  expect([hosted.mayPlace(order), hosted.mayPlace()]).toEqual([true, true]);
  const halted = { ...rules, instruments: { X: { ...terms, phase: 'halted' as const } } };
  hosted.take({ kind: 'venue.terms', rules: halted });
  expect([hosted.mayPlace(order), hosted.mayPlace()]).toEqual([false, true]);
});

test('until a session is restored, orders of the first epoch count as its own', () => {
  expect(newIdleHost().epoch).toBe(1);
});
