import type { SimulatedMarket } from './exchange.ts';

export interface DayBot {
  readonly slug: string;
  readonly symbols: readonly string[];
}

export const BOTS: readonly DayBot[] = [
  { slug: 'pair', symbols: ['BTC/USDT', 'ETH/USDT'] },
  { slug: 'single', symbols: ['SOL/USDT'] },
];
/** It also trades on paper. */
export const PAPER_BOT = BOTS[1]!;
export const ACCOUNT_CASH = 1_000_000;
export const MARKETS: readonly SimulatedMarket[] = [
  { symbol: 'BTC/USDT', base: 'BTC', quote: 'USDT', price: 100, step: 0.01, tick: 0.01 },
  { symbol: 'ETH/USDT', base: 'ETH', quote: 'USDT', price: 50, step: 0.01, tick: 0.01 },
  { symbol: 'SOL/USDT', base: 'SOL', quote: 'USDT', price: 20, step: 0.1, tick: 0.01 },
];
