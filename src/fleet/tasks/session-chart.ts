/** Data of the charts of a trading session: bars, declared indicators and equity. */
import type { Candles, ChartIndicator } from '../../base/charts/level.ts';
import {
  chartIndicator,
  indicatorsOf,
  sortedLines,
} from '../../backtest/report/chart-indicators.ts';
import { toCandles, toRanges } from '../../backtest/report/series.ts';
import { codeOf } from '../../bots/bundle.ts';
import { hostedBot } from '../../bots/load-bot.ts';
import { readChangedSpec } from '../../bots/hosted.ts';
import { engineConfig } from '../../bots/spec.ts';
import { ServiceError } from '../../base/errors.ts';
import { EarlierBars } from '../../engine/earlier-bars.ts';
import { Engine } from '../../engine/engine.ts';
import type { EngineInstrument } from '../../engine/engine-setup.ts';
import type { ReturnedIndicator } from '../../engine/series/returned-indicators.ts';
import type { OrderEvent } from '../../engine/journal.ts';
import type { Strategy } from '../../engine/strategy.ts';
import { readRows } from '../../events/read-events.ts';
import type { SessionState } from '../../events/session-state.ts';
import { allocateBars, appendBar } from '../../market/bars.ts';
import type { BotEventsTable, Db } from '../../storage/tables.ts';
import { stepOf, warmUpOf } from '../../trading/session-events.ts';
import type { BotRegistry } from '../registry/bots.ts';
import { getRunnableVersion } from '../registry/versions.ts';
import { findSession } from './find-session.ts';
import type { PaperInput } from './paper.ts';

/** Number of the newest events that the charts show: about 5,000 steps with their bars and states. */
const MOST_EVENTS = 10_000;
const KINDS = ['data.bars', 'session.state', 'order.filled', 'order.fee', 'order.corrected'];
/** Rows per query, so that other queries are not held up. */
const PAGE = 1000;

export interface SessionChart {
  readonly run_id: string;
  readonly symbol: string;
  /** All instruments of the session. */
  readonly symbols: readonly string[];
  readonly timeframe: string | null;
  readonly candles: Omit<Candles, 'barsPerCandle'>;
  readonly indicators: readonly ChartIndicator[];
  /** Values of each line of the indicators, in their order, one for each candle. */
  readonly lines: readonly (readonly (number | null)[])[];
  /** Why `indicators` is empty although the strategy may declare some. */
  readonly without_indicators: 'custom_code' | null;
  readonly equity: EquityCurve;
}

/** Equity after each step; times in seconds since the Unix epoch. */
interface EquityCurve {
  readonly time: readonly number[];
  readonly equity: readonly number[];
  /** Share of the highest equity so far, at most 0. */
  readonly drawdown: readonly number[];
}

export interface ChartRequest {
  /** Default: the newest trading session. */
  readonly run_id?: string | undefined;
  /** Default: the first instrument of the bot. */
  readonly symbol?: string | undefined;
  /** Returns only candles and values after this time, ms since the Unix epoch. */
  readonly after?: number | undefined;
}

/**
 * Reads the newest steps of a session that are in the database. Indicators are computed from the bars of
 * these steps, and from the recorded bars before the session if it has no earlier steps.
 *
 * @throws ServiceError `not_found` for the bot, the session or the instrument; `archived` for a session
 * of which no event is in the database.
 */
export async function readSessionChart(
  service: BotRegistry,
  ref: string,
  { run_id, symbol: wanted, after = -Infinity }: ChartRequest,
): Promise<SessionChart> {
  const { read } = service.storage;
  const { task } = await findSession(read, ref, run_id);
  const { from, to, params } = JSON.parse(task.input) as Partial<PaperInput>;
  const { document, files } = await getRunnableVersion(service, task.bot_id, task.version);
  const hosted = readChangedSpec(document, { from, to, params }, files);
  const { universe, data } = hosted.spec.spec;
  const { symbols } = universe;
  const index = wanted === undefined ? 0 : symbols.indexOf(wanted);
  if (index === -1) {
    throw new ServiceError('not_found', `bot ${ref} does not trade ${JSON.stringify(wanted)}`, {
      remedy: `Choose one of ${symbols.join(', ')}.`,
    });
  }
  const steps = await readNewest(read, task, KINDS, MOST_EVENTS);
  const { rows } = steps;
  if (rows.length === 0) await refuseArchived(read, task);
  const instruments = await barsOf(read, task, symbols, steps);
  const isCode = codeOf(hosted.files) !== undefined;
  const declared = isCode ? [] : computeIndicators(hosted, instruments);
  const shown = indicatorsOf(index, declared);
  const all = toCandles(instruments[index]!.bars, MOST_EVENTS);
  const first = firstAfter(all.time, after / 1000);
  const { time, open, high, low, close, volume } = all;
  return {
    run_id: task.task_id,
    symbol: symbols[index]!,
    symbols,
    timeframe: data.timeframe ?? null,
    candles: {
      time: time.slice(first),
      open: open.slice(first),
      high: high.slice(first),
      low: low.slice(first),
      close: close.slice(first),
      volume: volume.slice(first),
    },
    indicators: shown.map(chartIndicator),
    lines: shown.flatMap((one) =>
      sortedLines(one).map(({ values }) =>
        toRanges(values, one.bars.get(index)!, all).close.slice(first),
      ),
    ),
    without_indicators: isCode ? 'custom_code' : null,
    equity: equityOf(rows, after / 1000),
  };
}

function firstAfter(times: readonly number[], seconds: number): number {
  const first = times.findIndex((time) => time > seconds);
  return first === -1 ? times.length : first;
}

interface Run {
  readonly bot_id: string;
  readonly task_id: string;
}

interface NewestEvents {
  /** In order. */
  readonly rows: readonly BotEventsTable[];
  /** Whether the session has no earlier events of these kinds, in the database or archived. */
  readonly isWhole: boolean;
}

/** Reads the newest events of these kinds that are in the database: about `most`, in whole pages. */
async function readNewest(
  db: Db,
  { bot_id, task_id: run_id }: Run,
  kinds: readonly string[],
  most: number,
): Promise<NewestEvents> {
  const pages: (readonly BotEventsTable[])[] = [];
  let until_seq: number | undefined;
  for (let count = 0; count < most;) {
    const range = { after_seq: 0, until_seq, kinds, run_id, last: true, limit: PAGE };
    const { rows, archived_seq } = await readRows(db, bot_id, range);
    pages.unshift(rows);
    count += rows.length;
    if (rows.length < PAGE) return { rows: pages.flat(), isWhole: archived_seq === 0 };
    until_seq = rows[0]!.seq - 1;
  }
  return { rows: pages.flat(), isWhole: false };
}

/** @throws ServiceError `archived` if the first event of the session is archived. */
async function refuseArchived(db: Db, { bot_id, task_id: run_id }: Run): Promise<void> {
  await readRows(db, bot_id, { after_seq: 0, run_id, limit: 1 });
}

async function barsOf(
  db: Db,
  run: Run,
  symbols: readonly string[],
  { rows, isWhole }: NewestEvents,
): Promise<EngineInstrument[]> {
  const bars = new Map(symbols.map((symbol) => [symbol, allocateBars(0)]));
  for (const { kind, payload } of rows) {
    if (kind !== 'data.bars') continue;
    const step = stepOf(payload);
    for (const [symbol, candle] of Object.entries(step.bars)) {
      bars.set(symbol, appendBar(bars.get(symbol)!, step.time, candle));
    }
  }
  const earlier = new EarlierBars();
  const before = isWhole ? await readNewest(db, run, ['data.warm_up'], Infinity) : undefined;
  // Without the first parts, which may be archived by now, the others would begin too late.
  if (before?.isWhole === true)
    for (const { payload } of before.rows) earlier.add(warmUpOf(payload));
  return symbols.map((symbol) => ({ symbol, bars: bars.get(symbol)!, ...earlier.of(symbol) }));
}

/** Runs the strategy without trading, to compute its indicators. */
function computeIndicators(
  hosted: Parameters<typeof hostedBot>[0],
  instruments: readonly EngineInstrument[],
): readonly ReturnedIndicator[] {
  const { strategy, params } = hostedBot(hosted);
  if (strategy.indicators === undefined) return [];
  const idle: Strategy = { ...strategy, create: () => ({ onBar() {} }) };
  const config = engineConfig(hosted.spec);
  const engine = new Engine({
    instruments,
    strategy: idle,
    params,
    config,
    keepsEvents: false,
    ignoresWakeOn: true,
  });
  if (engine.steps > 0) engine.advance(engine.steps);
  return engine.indicators();
}

/**
 * Values cash and positions at the closes of each step. Sessions record their state less often.
 *
 * @param after seconds since the Unix epoch.
 */
function equityOf(rows: readonly BotEventsTable[], after: number): EquityCurve {
  const curve = { time: [] as number[], equity: [] as number[], drawdown: [] as number[] };
  const account = { cash: Number.NaN, positions: new Map<string, number>() };
  const closes = new Map<string, number>();
  let peak = 0;
  let time: number | undefined;
  const endStep = (): void => {
    if (time === undefined) return;
    let equity = account.cash;
    for (const [symbol, units] of account.positions) equity += units * (closes.get(symbol) ?? NaN);
    if (!Number.isFinite(equity)) return;
    peak = Math.max(peak, equity);
    if (time <= after) return;
    curve.time.push(time);
    curve.equity.push(equity);
    curve.drawdown.push(peak > 0 ? equity / peak - 1 : 0);
  };
  for (const { kind, payload } of rows) {
    if (kind === 'data.bars') {
      endStep();
      const step = stepOf(payload);
      time = step.time / 1000;
      for (const [symbol, { close }] of Object.entries(step.bars)) closes.set(symbol, close);
    } else if (kind === 'session.state') {
      const { cash, positions, carry } = JSON.parse(payload) as SessionState;
      account.cash = cash;
      account.positions = new Map(Object.entries(positions));
      peak = Math.max(peak, carry?.risk.peak_equity ?? 0);
    } else {
      const { symbol, cash, position } = JSON.parse(payload) as Booked;
      account.cash = cash;
      if (position === 0) account.positions.delete(symbol);
      else account.positions.set(symbol, position);
    }
  }
  endStep();
  return curve;
}

/** Payload of an event that changes the account. */
type Booked = Extract<OrderEvent, { readonly cash: number }>;
