import type { Case } from './case.ts';
import { LIMITS } from './cases/limit-cases.ts';
import { MARKET_DATA } from './cases/market-data-cases.ts';
import { ORDER_FLOW } from './cases/order-flow-cases.ts';

/** Every case, in order. */
export const CATALOGUE: readonly Case[] = [...ORDER_FLOW, ...MARKET_DATA, ...LIMITS];
