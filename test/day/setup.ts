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

/** Prices are multiples of it. */
export const PRICE_UNIT = 0.01;

export interface Market {
  readonly symbol: string;
  /** To which the price returns. */
  readonly price: number;
  /** Quantities are multiples of it. */
  readonly step: number;
}

export const ACCOUNT_CASH = 1_000_000;
export const MARKETS: readonly Market[] = [
  { symbol: 'BTC/USDT', price: 100, step: 0.01 },
  { symbol: 'ETH/USDT', price: 50, step: 0.01 },
  { symbol: 'SOL/USDT', price: 20, step: 0.1 },
];
