import type { PaperSession } from '../../../api/bot-state.ts';

/**
 * Limits of a bot by the names in its spec, and its share of thresholds of the firm by names that begin
 * with `threshold_`. A limit that is off is absent.
 */
export type BotLimits = Readonly<Record<string, number>>;

/** How much of a limit a session uses. */
export interface LimitUse {
  readonly name: string;
  /** In the unit of the limit. */
  readonly used: number;
  readonly limit: number;
}

/**
 * Measures how much of each limit a session uses. Limits of single orders are compared with the largest
 * working order. Leaves out limits that the state of a session does not show. Runs both on the server
 * and in the browser.
 */
export function describeLimits(
  {
    equity,
    positions,
    working,
    messages = 0,
    carry,
  }: Pick<PaperSession, 'equity' | 'positions' | 'working' | 'messages' | 'carry'>,
  closes: Readonly<Record<string, number>>,
  limits: BotLimits,
): LimitUse[] {
  const most = (values: readonly number[]): number => Math.max(0, ...values);
  const closeOf = (symbol: string): number => closes[symbol] ?? carry?.marks[symbol] ?? 0;
  const share = (loss: number, of: number): number => (of > 0 ? Math.max(0, loss) / of : 0);
  const peak = carry?.risk.peak_equity ?? equity;
  const start = carry?.risk.day_start_equity ?? equity;
  const units = ({ quantity, weight = 0, filled, symbol }: (typeof working)[number]): number => {
    const close = closeOf(symbol);
    if (quantity !== undefined) return quantity - filled;
    return close > 0 ? Math.abs((weight * equity) / close - (positions[symbol] ?? 0)) : 0;
  };
  const symbols = [...new Set([...Object.keys(positions), ...working.map(({ symbol }) => symbol)])];
  const orderValue = (): number =>
    most(working.map((one) => units(one) * (one.limit ?? one.stop ?? closeOf(one.symbol))));
  // Each position counts as if its working orders of one side were filled.
  const exposure = (symbol: string): number => {
    const held = positions[symbol] ?? 0;
    const ofSide = (side: 'buy' | 'sell'): number =>
      working
        .filter((one) => one.symbol === symbol && one.side === side)
        .reduce((sum, one) => sum + units(one), 0);
    return (
      most([Math.abs(held + ofSide('buy')), Math.abs(held - ofSide('sell'))]) * closeOf(symbol)
    );
  };
  const used: Readonly<Record<string, () => number>> = {
    max_order_value: orderValue,
    threshold_order_value: orderValue,
    threshold_gross_exposure: () => symbols.reduce((sum, symbol) => sum + exposure(symbol), 0),
    threshold_daily_loss: () => Math.max(0, start - equity),
    max_order_qty: () => most(working.map(units)),
    max_messages_per_second: () => messages,
    threshold_messages: () => messages,
    price_collar_bps: () =>
      most(
        working.flatMap(({ symbol, limit, stop }) => {
          const price = limit ?? stop;
          const close = closeOf(symbol);
          return price === undefined || close === 0 ? [] : [1e4 * Math.abs(price / close - 1)];
        }),
      ),
    max_position_pct: () =>
      most(
        Object.entries(positions).map(([symbol, count]) =>
          share(Math.abs(count * closeOf(symbol)), equity),
        ),
      ),
    max_daily_loss_pct: () => share(start - equity, start),
    max_drawdown_pct: () => share(peak - equity, peak),
    max_instruments: () => symbols.length,
  };
  return Object.entries(limits).flatMap(([name, limit]) => {
    const measure = used[name];
    return measure === undefined ? [] : [{ name, limit, used: measure() }];
  });
}
