import type { BotEvent } from '../../../api/bot-state.ts';
import type { OrderMark } from './fill-marks.ts';

/** Collects fills and refused orders of a session, and returns those of an instrument by bar. */
export function orderMarks() {
  const MOST = 2000;
  const number = (value: unknown): string =>
    Number(value).toLocaleString('en-US', { maximumFractionDigits: 6 });
  let events: BotEvent[] = [];
  return {
    add(event: BotEvent): void {
      if (event.seq <= (events.at(-1)?.seq ?? 0)) return;
      events.push(event);
      if (events.length > 2 * MOST) events = events.slice(-MOST);
    },
    /** @param times openings of the bars, ascending. */
    of(symbol: string, times: readonly number[]): OrderMark[] {
      const barOf = (seconds: number): number | undefined => {
        let [low, high] = [0, times.length];
        while (low < high) {
          const middle = (low + high) >> 1;
          if (times[middle]! <= seconds) low = middle + 1;
          else high = middle;
        }
        return times[low - 1];
      };
      return events.flatMap(({ kind, payload, occurred_at }): OrderMark[] => {
        const time = barOf(Date.parse(occurred_at) / 1000);
        if (payload['symbol'] !== symbol || time === undefined) return [];
        const order = String(payload['order']);
        if (kind !== 'order.filled') {
          const reason = String(payload['reason']).replaceAll('_', ' ');
          return [{ time, kind: 'refused', text: `Order ${order} ${kind.slice(6)}: ${reason}` }];
        }
        const side = payload['side'] as 'buy' | 'sell';
        const verb = side === 'buy' ? 'Bought' : 'Sold';
        const text = `${verb} ${number(payload['quantity'])} at ${number(payload['price'])}, order ${order}`;
        return [{ time, kind: side, text }];
      });
    },
  };
}
