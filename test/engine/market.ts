import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { NO_RISK_LIMITS } from '../../src/engine/config.ts';
import type { EngineConfig } from '../../src/engine/config.ts';
import { Engine } from '../../src/engine/engine.ts';
import type { EngineSetup } from '../../src/engine/engine-setup.ts';
import type { Instrument } from '../../src/engine/instrument.ts';
import type { Signals } from '../../src/engine/model-signals.ts';
import type { OrderEvent } from '../../src/engine/journal.ts';
import type { Order, OrderRequest } from '../../src/engine/orders/order.ts';
import type { Thresholds } from '../../src/engine/risk/firm-thresholds.ts';
import type { RunResult } from '../../src/engine/run-result.ts';
import { BUILT_IN_STRATEGIES } from '../../src/engine/strategies/built-in.ts';
import { stepsOf } from '../../src/engine/steps.ts';
import { defineStrategy } from '../../src/engine/strategy.ts';
import type { Broker, Fill, Strategy, StrategyContext } from '../../src/engine/strategy.ts';
import { allocateBars, barsFromRows } from '../../src/market/bars.ts';
import type { Bars } from '../../src/market/bars.ts';

export const DAY = 86_400_000;
export const START = Date.UTC(2024, 0, 1);

export const ENGINE_DEFAULTS: EngineConfig = {
  cash: 100_000,
  fill: { model: 'next_open' },
  units: 'fractional',
  fees: { model: 'none' },
  slippage: { model: 'none' },
  account: { model: 'cash' },
  risk: NO_RISK_LIMITS,
  seed: 1,
};

/** A 2:1 margin account with a very low maintenance margin. */
export const MARGIN = { model: 'margin', initial: 0.5, maintenance: 0.05 } as const;

export type Candle = readonly [
  open: number,
  high: number,
  low: number,
  close: number,
  volume?: number,
];

/** One bar every `step` ms from `start`, with a default volume of 1,000. */
export function bars(candles: readonly Candle[], start = START, step = DAY): Bars {
  return barsFromRows(
    candles.map(([open, high, low, close, volume = 1000], index) => [
      start + index * step,
      open,
      high,
      low,
      close,
      volume,
    ]),
  );
}

/** `count` bars with all prices at `price`. */
export function flat(count: number, price = 100): Candle[] {
  return Array.from({ length: count }, () => [price, price, price, price] as const);
}

/** The daily S&P 500 of the examples. */
export function sp500(): Bars {
  const path = join(import.meta.dirname, '../../examples/data/sp500-daily.csv');
  const [header, ...lines] = readFileSync(path, 'utf8').trim().split('\n');
  const names = header!.trim().split(',');
  const wanted = ['date', 'open', 'high', 'low', 'close', 'volume'];
  const places = wanted.map((name) => names.indexOf(name));
  return barsFromRows(
    lines.map((line) => {
      const cells = line.split(',');
      const [date, ...numbers] = places.map((place) => cells[place]!);
      const [open, high, low, close, volume] = numbers.map(Number);
      return [Date.parse(date!), open!, high!, low!, close!, volume!];
    }),
  );
}

/** Context of a scripted strategy at one step. */
export interface Scene {
  readonly step: number;
  readonly context: StrategyContext;
  readonly broker: Broker;
  readonly instruments: readonly Instrument[];
  /** Places an order, by default for the first instrument. */
  readonly order: (
    request: Omit<OrderRequest, 'instrument'> & Partial<OrderRequest>,
  ) => Readonly<Order>;
  readonly buy: (quantity: number, more?: Partial<OrderRequest>) => Readonly<Order>;
  readonly sell: (quantity: number, more?: Partial<OrderRequest>) => Readonly<Order>;
}

/** Actions in `onBar`, by step from 0. */
export type Script = Readonly<Record<number, (scene: Scene) => void>>;

export interface Play {
  /** Bars of symbol X, or of several markets by symbol. */
  readonly bars: Bars | Readonly<Record<string, Bars>>;
  readonly config?: Partial<EngineConfig>;
  readonly thresholds?: Thresholds;
  readonly script?: Script;
  readonly everyBar?: (scene: Scene) => void;
  readonly onCreate?: (scene: Scene) => void;
  readonly onFill?: (scene: Scene, fill: Fill) => void;
  /** Steps per `advance`, or whether bars are appended time by time. */
  readonly slice?: number | 'as they come';
}

export interface Played {
  readonly result: RunResult;
  readonly events: readonly OrderEvent[];
  /** Fills of the journal. */
  readonly fills: readonly FillRow[];
  /** Every other end of an order: `[step, order, status, reason]`. */
  readonly ends: readonly (readonly [number, number, string, string])[];
}

/** Signed: bought is positive. */
export type FillRow = readonly [step: number, order: number, quantity: number, price: number];

export function play({ slice = Infinity, config, thresholds, ...setup }: Play): Played {
  const instruments =
    'time' in setup.bars
      ? [{ symbol: 'X', bars: setup.bars as Bars }]
      : Object.entries(setup.bars).map(([symbol, history]) => ({ symbol, bars: history }));
  const strategy = scripted(setup);
  return run(
    { instruments, strategy, params: {}, config: { ...ENGINE_DEFAULTS, ...config } },
    slice,
    thresholds,
  );
}

function run(setup: EngineSetup, slice: Play['slice'] & {}, thresholds: Thresholds = {}): Played {
  if (slice !== 'as they come') {
    const engine = new Engine(setup);
    engine.setThresholds(thresholds);
    while (engine.advance(slice));
    return played(engine.result());
  }
  const instruments = setup.instruments.map(({ symbol }) => ({ symbol, bars: allocateBars(0) }));
  const engine = new Engine({ ...setup, instruments });
  engine.setThresholds(thresholds);
  for (const step of stepsOf(setup.instruments)) {
    engine.append(step);
    engine.advance(1);
  }
  return played(engine.result());
}

function played(result: RunResult): Played {
  const events = [...result.journal.events()];
  const steps = new Map(Array.from(result.time, (time, step) => [time, step]));
  const stepOf = (event: OrderEvent): number => steps.get(Date.parse(event.time))!;
  const fills: FillRow[] = [];
  const ends: [number, number, string, string][] = [];
  for (const event of events) {
    if (event.kind === 'order.filled') {
      const sign = event.side === 'buy' ? 1 : -1;
      fills.push([stepOf(event), event.order, sign * event.quantity, event.price]);
    } else if ('reason' in event) {
      ends.push([stepOf(event), event.order, event.kind.slice('order.'.length), event.reason]);
    }
  }
  return { result, events, fills, ends };
}

/** Runs a built-in strategy. */
export function backtest(
  strategy: string,
  params: Readonly<Record<string, number>>,
  markets: Readonly<Record<string, Bars>>,
  config: Partial<EngineConfig> = {},
  signals?: Signals,
): Played {
  const setup = {
    signals,
    instruments: Object.entries(markets).map(([symbol, history]) => ({ symbol, bars: history })),
    strategy: BUILT_IN_STRATEGIES.get(strategy)!,
    params,
    config: { ...ENGINE_DEFAULTS, ...config },
  };
  return run(setup, 1000);
}

/** A strategy that follows a script. */
export function scripted({
  script = {},
  everyBar,
  onCreate,
  onFill,
}: Omit<Play, 'bars'>): Strategy {
  return defineStrategy({
    name: 'scripted',
    description: 'Does what a test tells it to.',
    params: {},
    create(context) {
      const { broker, instruments } = context;
      let step = -1;
      const scene: Scene = {
        get step() {
          return step;
        },
        context,
        broker,
        instruments,
        order: (request) => broker.order({ instrument: instruments[0], ...request }),
        buy: (quantity, more) => scene.order({ side: 'buy', quantity, ...more }),
        sell: (quantity, more) => scene.order({ side: 'sell', quantity, ...more }),
      };
      onCreate?.(scene);
      return {
        onBar() {
          step += 1;
          script[step]?.(scene);
          everyBar?.(scene);
        },
        // Fills of a step precede its `onBar`, which increments the counter.
        ...(onFill !== undefined && {
          onFill: (fill: Fill) => onFill({ ...scene, step: step + 1 }, fill),
        }),
      };
    },
  });
}
