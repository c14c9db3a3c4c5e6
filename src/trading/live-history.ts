import { barsFromRows, type Bars } from '../market/bars.ts';
import type { Timeframe } from '../market/timeframe.ts';
import { isValid } from './assembler.ts';
import type { Exchange } from './venues/market-data.ts';

interface HistoryRequest {
  readonly exchange: Pick<Exchange, 'history'>;
  readonly symbols: readonly string[];
  readonly timeframe: Timeframe;
  /** Bars of each symbol. */
  readonly count: number;
  /** Time of the first bar that does not belong to the history, ms since epoch. */
  readonly before: number;
}

/** Fetches the closed bars of each symbol before a time, without invalid ones. Rejects like `history`. */
export async function fetchHistory(request: HistoryRequest): Promise<Record<string, Bars>> {
  const entries: [string, Bars][] = [];
  for (const symbol of request.symbols) entries.push([symbol, await historyOf(symbol, request)]);
  return Object.fromEntries(entries);
}

async function historyOf(
  symbol: string,
  { exchange, timeframe, count, before }: HistoryRequest,
): Promise<Bars> {
  const rows: [number, number, number, number, number, number][] = [];
  let since = before - count * timeframe.ms;
  for (let asked = -Infinity; since > asked && since < before;) {
    asked = since;
    const page = await exchange.history(symbol, timeframe.name, since);
    for (const bar of page) {
      if (bar.time < since || bar.time >= before) continue;
      since = bar.time + 1;
      const { time, open, high, low, close, volume } = bar;
      if (isValid(bar)) rows.push([time, open, high, low, close, volume]);
    }
    const last = page.at(-1);
    if (last === undefined || last.time + timeframe.ms >= before) break;
    since = Math.max(since, last.time + 1);
  }
  return barsFromRows(rows);
}
