import type { EngineInstrument } from '../engine/engine-setup.ts';
import { allocateBars, barsFromRows, type Bars } from '../market/bars.ts';
import { bucketOf } from '../market/periods.ts';
import { parseTimeframe, type Timeframe, type TimeframeName } from '../market/timeframe.ts';
import { isValid } from './assembler.ts';
import type { Exchange } from './venues/market-data.ts';
import type { WarmUpRequest } from './warm-up-of-session.ts';

interface HistoryRequest {
  readonly exchange: Pick<Exchange, 'history' | 'offers'>;
  readonly symbols: readonly string[];
  readonly timeframe: Timeframe;
  readonly wanted: WarmUpRequest;
  /** Time of the first bar that does not belong to the history, ms since epoch. */
  readonly before: number;
}

/**
 * Fetches the closed bars of each symbol before a time, without invalid ones. Longer bars are made from
 * bars of the session if the exchange lacks their timeframe or begins them at other times. Rejects
 * like `history`.
 */
export async function fetchHistory(request: HistoryRequest): Promise<EngineInstrument[]> {
  const instruments: EngineInstrument[] = [];
  for (const symbol of request.symbols) instruments.push(await historyOf(symbol, request));
  return instruments;
}

async function historyOf(
  symbol: string,
  { exchange, timeframe, wanted, before }: HistoryRequest,
): Promise<EngineInstrument> {
  const longer: Partial<Record<TimeframeName, Bars>> = {};
  let since = before - wanted.bars * timeframe.ms;
  for (const [name, count] of Object.entries(wanted.longer)) {
    const long = parseTimeframe(name);
    // The bars of the session continue the period in which it begins.
    const { start } = bucketOf(before, long);
    const first = bucketOf(start - count * long.ms, long).start;
    const bars = exchange.offers(long.name)
      ? await barsBetween(exchange, symbol, long, first, start)
      : undefined;
    if (bars?.time.every((time) => bucketOf(time, long).start === time)) longer[long.name] = bars;
    since = Math.min(since, longer[long.name] === undefined ? first : start);
  }
  const warmUp = await barsBetween(exchange, symbol, timeframe, since, before);
  return { symbol, bars: allocateBars(0), warmUp, longer };
}

async function barsBetween(
  exchange: HistoryRequest['exchange'],
  symbol: string,
  { name, ms }: Timeframe,
  from: number,
  until: number,
): Promise<Bars> {
  const rows: [number, number, number, number, number, number][] = [];
  let since = from;
  for (let asked = -Infinity; since > asked && since < until;) {
    asked = since;
    const page = await exchange.history(symbol, name, since);
    for (const bar of page) {
      if (bar.time < since || bar.time >= until) continue;
      since = bar.time + 1;
      const { time, open, high, low, close, volume } = bar;
      if (isValid(bar)) rows.push([time, open, high, low, close, volume]);
    }
    const last = page.at(-1);
    if (last === undefined || last.time + ms >= until) break;
    since = Math.max(since, last.time + 1);
  }
  return barsFromRows(rows);
}
