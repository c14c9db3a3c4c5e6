import type { PaperSession } from '../../../api/bot-state.ts';

/** Formats of the cells, passed in because scripts of the browser cannot import them. */
interface CellFormats {
  readonly money: (value: number) => string;
  readonly percent: (value: number) => string;
  readonly units: (value: number) => string;
  /** Text for an unknown value. */
  readonly none: string;
}

/**
 * Describes the exposure, positions and working orders of a session. Runs both on the server and in
 * the browser.
 */
export function describeSession(
  { equity, positions, working }: Pick<PaperSession, 'equity' | 'positions' | 'working'>,
  closes: Readonly<Record<string, number>>,
  { money, percent, units, none }: CellFormats,
) {
  const held = Object.entries(positions).map(([symbol, count]) => {
    const close = closes[symbol];
    return { symbol, count, close, value: close === undefined ? undefined : count * close };
  });
  const isKnown = equity > 0 && held.every(({ value }) => value !== undefined);
  const exposure = (weigh: (value: number) => number): string =>
    isKnown ? percent(held.reduce((sum, { value }) => sum + weigh(value!), 0) / equity) : none;
  return {
    net: exposure((value) => value),
    gross: exposure(Math.abs),
    positions: held.map(({ symbol, count, close, value }) => [
      symbol,
      units(count),
      close === undefined ? none : money(close),
      value === undefined ? none : money(value),
      value === undefined || equity <= 0 ? none : percent(value / equity),
    ]),
    orders: working.map(({ order, symbol, side, type, quantity, weight, filled, stop, limit }) => [
      String(order),
      symbol,
      `${side} ${type.replace('_', ' ')}`,
      quantity === undefined
        ? weight === undefined
          ? none
          : percent(weight)
        : units(quantity - filled),
      [stop, limit]
        .filter((price) => price !== undefined)
        .map(money)
        .join(' / ') || 'market',
    ]),
  };
}
