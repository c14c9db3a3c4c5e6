/** A correct bot, and bots with one fault each. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { loadBot } from '../../../src/bots/load-bot.ts';
import type { TriedBot } from '../../../src/compliance/conformance/tried-session.ts';
import {
  clientOrderId,
  type Venue,
  type VenueReport,
  type VenueRules,
} from '../../../src/trading/venue.ts';

const EXAMPLES = join(import.meta.dirname, '../../../examples');

/** Sets every limit. */
export const correct: TriedBot = { bot: loadBot(join(import.meta.dirname, 'correct.yaml')) };

/** Trades two instruments. */
export const twoInstruments: TriedBot = tradeToo(correct, 'NDX');

/** Sets no limit. */
export const noLimits: TriedBot = { bot: loadBot(join(EXAMPLES, 'sma-crossover.yaml')) };

function tradeToo({ bot }: TriedBot, symbol: string): TriedBot {
  const { spec } = bot.spec;
  const symbols = [...spec.universe.symbols, symbol];
  const universe = { ...spec.universe, symbols };
  const risk = { ...spec.risk!, max_instruments: 2, permitted: { instruments: symbols } };
  return { bot: { ...bot, spec: { ...bot.spec, spec: { ...spec, universe, risk } } } };
}

const alwaysOpen = ({ types, instruments }: VenueRules): VenueRules => ({
  types,
  instruments: Object.fromEntries(
    Object.entries(instruments).map(([symbol, rules]) => [symbol, { ...rules, phase: 'open' }]),
  ),
});

const broken = (change: (venue: Venue, deploymentId: string) => Partial<Venue>): TriedBot => ({
  ...correct,
  adapter: (venue, { deploymentId }) => ({ ...venue, ...change(venue, deploymentId) }),
});

/** Reports orders as canceled without sending the cancels to the venue. */
export const brokenKill = broken((venue) => ({
  async cancel({ order, client_order_id }) {
    const nothing = { filled: 0, cost: 0, fee: 0, fee_units: 0 };
    return { order, client_order_id, status: 'canceled', ...nothing, time: Date.now() };
  },
  openOrders: async () => {
    await venue.openOrders();
    return [];
  },
}));

/** Counts partial fills twice. */
export const doubleCounts = broken((venue) => ({
  async *reports(signal) {
    for await (const report of venue.reports(signal)) {
      const { status, filled, cost } = report;
      yield status === 'open' ? { ...report, filled: 2 * filled, cost: 2 * cost } : report;
    }
  },
}));

/** Sends an order that is not answered within 1.5 s again, with another client order id. */
export const resends = broken((venue, deploymentId) => ({
  async place(order) {
    const number = order.order + 1000;
    const client_order_id = clientOrderId(deploymentId, number);
    const answer = await Promise.race([venue.place(order), delay(1500, undefined)]);
    const renamed = { ...order, order: number, client_order_id };
    const report = answer ?? (await venue.place(renamed));
    return { ...report, order: order.order, client_order_id: order.client_order_id };
  },
}));

/** Treats every market as open and retries an order until the venue accepts it. */
export const ignoresHalts = broken((venue, deploymentId) => ({
  rules: async () => alwaysOpen(await venue.rules()),
  async *terms(signal) {
    for await (const rules of venue.terms(signal)) yield alwaysOpen(rules);
  },
  async place(order) {
    let report: VenueReport = await venue.place(order);
    for (let attempt = 1; report.reason === 'market_closed' && attempt < 100; attempt += 1) {
      await delay(5000);
      const number = order.order + 1000 * attempt;
      const client_order_id = clientOrderId(deploymentId, number);
      report = await venue.place({ ...order, order: number, client_order_id });
    }
    return { ...report, order: order.order, client_order_id: order.client_order_id };
  },
}));
