import type { Case } from './case.ts';
import { BARS } from './cases/bar-cases.ts';
import { LIMITS } from './cases/limit-cases.ts';
import { MARKET_STATES } from './cases/market-state-cases.ts';
import { ORDERS } from './cases/order-cases.ts';
import { VENUE_MESSAGES } from './cases/venue-message-cases.ts';

/** Every case, by id. */
export const CATALOGUE: readonly Case[] = [
  ...ORDERS,
  ...MARKET_STATES,
  ...VENUE_MESSAGES,
  ...BARS,
  ...LIMITS,
].toSorted((a, b) => (a.id < b.id ? -1 : 1));
