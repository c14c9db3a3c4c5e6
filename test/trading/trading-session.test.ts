import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
import { execute } from '../../src/backtest/execute.ts';
import { loadBot } from '../../src/bots/load-bot.ts';
import { prepare } from '../../src/bots/prepare.ts';
import type { EngineConfig } from '../../src/engine/config.ts';
import type { EngineSetup } from '../../src/engine/engine-setup.ts';
import { Engine } from '../../src/engine/engine.ts';
import type { OrderEvent } from '../../src/engine/journal.ts';
import { seededRandom } from '../../src/engine/random.ts';
import { stepsOf } from '../../src/engine/steps.ts';
import type { Step } from '../../src/engine/steps.ts';
import { BUILT_IN_STRATEGIES } from '../../src/engine/strategies/built-in.ts';
import { defineStrategy } from '../../src/engine/strategy.ts';
import type { StrategyContext } from '../../src/engine/strategy.ts';
import type { Bars } from '../../src/market/bars.ts';
import { barsFromRows } from '../../src/market/bars.ts';
import { parseTimeframe } from '../../src/market/timeframe.ts';
import { replayFeed } from '../../src/trading/replay-feed.ts';
import { closeSession, stateHash } from '../../src/events/session-state.ts';
import { signalsOver } from '../../src/bots/models/signals.ts';
import { openRun } from '../../src/trading/sandbox/hosted-run.ts';
import { inputEvent, parseInput, progressEvents } from '../../src/trading/session-events.ts';
import type { SessionInput } from '../../src/trading/session-events.ts';
import { TradingSession } from '../../src/trading/trading-session.ts';
import type { SessionSetup } from '../../src/trading/trading-session.ts';
import { inProcess } from '../cli/in-process.ts';
import { bars, DAY, ENGINE_DEFAULTS, flat, MARGIN, START } from '../engine/market.ts';
import { EXAMPLES, exampleBots } from '../bots/example-bots.ts';
import { isAtLength } from '../length.ts';

function eventHash(events: Iterable<OrderEvent>): string {
  const hash = createHash('sha256');
  for (const event of events) hash.update(`${JSON.stringify(event)}\n`);
  return hash.digest('hex');
}

function sessionSetup({ instruments, strategy, params, config }: EngineSetup): SessionSetup {
  const symbols = instruments.map(({ symbol }) => symbol);
  return { symbols, strategy, params, config, timeoutMs: Infinity };
}

describe('a session on the bars of a backtest', () => {
  let catalogueDir: string;
  beforeAll(async () => {
    catalogueDir = await mkdtemp(join(tmpdir(), 'service-local-session-'));
    const csv = join(EXAMPLES, 'data/sp500-daily.csv');
    const env = { SERVICE_LOCAL_CATALOGUE_DIR: catalogueDir };
    await inProcess(['data', 'import', csv, '--symbol', 'SPX'], { env });
  });
  afterAll(() => rm(catalogueDir, { recursive: true }));

  const tried = isAtLength ? exampleBots : ['paper.yaml', 'pairs-reversion.yaml'];
  test.each(tried)('%s produces the same events and the same account', async (name) => {
    const bot = loadBot(join(EXAMPLES, name), WINDOW);
    const { job } = await prepare(bot, { catalogueDir, assertions: [] });
    const signals = await signalsOver(bot.models, job.instruments);
    const run = await execute({ ...job, signals }, { timeoutMs: 10_000 });
    const shown = await openRun(bot);
    const setup = { ...sessionSetup(job), signals: shown.signals };
    const session = new TradingSession(setup);
    const events: OrderEvent[] = [];
    const recorded: SessionInput[] = [];
    const timeframe = parseTimeframe('1d');
    for await (const item of replayFeed({ ...job, timeframe, speed: 'max' })) {
      if (item.kind !== 'data.bars' && item.kind !== 'data.warm_up') continue;
      if (item.kind === 'data.bars') await shown.take([item.step]);
      events.push(...session.take(item).events);
      const { kind, payload } = inputEvent(item, 0);
      recorded.push(parseInput(kind as SessionInput['kind'], JSON.stringify(payload)));
    }
    const resumed = await TradingSession.resume(setup, recorded);
    expect(stateHash(resumed.state())).toBe(stateHash(session.state()));
    await shown.close();
    expect(events.length).toBeGreaterThan(0);
    expect(eventHash(events)).toBe(eventHash(run.journal.events()));
    expect(session.state()).toMatchObject({
      status: 'running',
      time: new Date(run.time.at(-1)!).toISOString(),
      seq: run.journal.count,
      cash: run.cash,
      equity: run.equity.at(-1),
      positions: run.positions,
    });
  });

  /** Years that all examples have data for, short enough for a quick test. */
  const WINDOW = { params: {}, from: '2006-01-01', to: '2008-12-31' };
});

/** Parameters small enough that every strategy trades within a few dozen bars. */
const BUILT_IN: Readonly<
  Record<string, readonly [params: Record<string, number>, markets: number]>
> = {
  buy_and_hold: [{}, 3],
  sma_crossover: [{ fast: 2, slow: 5 }, 1],
  rsi_reversion: [{ period: 3, lower: 45, upper: 55 }, 1],
  donchian_breakout: [{ entry: 4, exit: 2 }, 1],
  momentum_rotation: [{ lookback: 3, hold: 2, top: 2 }, 3],
  pairs_reversion: [{ lookback: 5, entry: 1, exit: 0.3 }, 2],
};

const MODELS: readonly Partial<EngineConfig>[] = [
  { fill: { model: 'next_open' }, fees: { model: 'percent', rate: 0.001, min: 0.5 } },
  { fill: { model: 'ohlc_path' }, slippage: { model: 'basis_points', bps: 20 } },
  { fill: { model: 'volume_share', limit: 0.1 }, slippage: { model: 'volume_share', impact: 0.1 } },
];

const cases = Object.keys(BUILT_IN).flatMap((name) =>
  MODELS.map((model) => ({ name, fill: model.fill!.model, model })),
);

describe('built-in strategies, with gaps and several instruments', () => {
  it('all built-in strategies are among the cases', () => {
    // Signals for the strategies that read models.
    const alone = [...BUILT_IN_STRATEGIES.values()].filter(({ signals }) => signals === undefined);
    expect(Object.keys(BUILT_IN).toSorted()).toEqual(alone.map(({ name }) => name).toSorted());
  });

  it.each(cases)('$name with $fill fills step by step as in one run', ({ name, model }) => {
    for (let seed = 1; seed <= 2; seed += 1) {
      const setup = builtIn(name, model, seed, 120);
      const whole = runOf(setup);
      const session = new TradingSession(sessionSetup(setup));
      const events: OrderEvent[] = [];
      const equity: number[] = [];
      for (const step of stepsOf(setup.instruments)) {
        const progress = session.push(step);
        events.push(...progress.events);
        equity.push(progress.state.equity);
      }
      expect(events).toEqual([...whole.journal.events()]);
      expect(events.some(({ kind }) => kind === 'order.filled')).toBe(true);
      expect(equity).toEqual([...whole.equity]);
      expect(session.state().working.length).toBe(whole.orders.working);
    }
  });

  it.runIf(isAtLength).each(cases)(
    '$name with $fill resumes after any step',
    async ({ name, model }) => {
      const setup = sessionSetup(builtIn(name, model, 7, 20));
      const steps = [...stepsOf(builtIn(name, model, 7, 20).instruments)];
      const session = new TradingSession(setup);
      for (let done = 0; done <= steps.length; done += 1) {
        const resumed = await TradingSession.resume(setup, steps.slice(0, done));
        expect(resumed.events()).toEqual(session.events());
        expect(stateHash(resumed.state())).toBe(stateHash(session.state()));
        for (const step of steps.slice(done, done + 3)) resumed.push(step);
        const further = await TradingSession.resume(setup, steps.slice(0, done + 3));
        expect(resumed.state()).toEqual(further.state());
        if (done < steps.length) session.push(steps[done]!);
      }
    },
  );

  function builtIn(
    name: string,
    model: Partial<EngineConfig>,
    seed: number,
    length: number,
  ): EngineSetup {
    const [params, markets] = BUILT_IN[name]!;
    return {
      instruments: Array.from({ length: markets }, (_, i) => ({
        symbol: `M${i}`,
        bars: market(100 * seed + i, length),
      })),
      strategy: BUILT_IN_STRATEGIES.get(name)!,
      params,
      config: { ...ENGINE_DEFAULTS, cash: 5000, account: MARGIN, ...model },
    };
  }

  /** A random walk with gaps of its own. */
  function market(seed: number, length: number): Bars {
    const random = seededRandom(seed);
    let time = START + Math.floor(random() * 3) * DAY;
    let last = 40;
    const rows = Array.from({ length }, () => {
      const open = last * (1 + (random() - 0.5) * 0.02);
      last = open * (1 + (random() - 0.5) * 0.08);
      const high = Math.max(open, last) * 1.01;
      const low = Math.min(open, last) * 0.99;
      const row = [time, open, high, low, last, Math.floor(random() * 2000)] as const;
      time += random() < 0.3 ? 2 * DAY : DAY;
      return row;
    });
    return barsFromRows(rows);
  }

  function runOf(setup: EngineSetup): ReturnType<Engine['result']> {
    const engine = new Engine(setup);
    while (engine.advance(1000));
    return engine.result();
  }
});

/** Creates a session of the instrument X whose strategy does this at each step, counted from 0. */
function scripted(
  onStep: (step: number, context: StrategyContext) => void,
  options: { readonly config?: Partial<EngineConfig>; readonly timeoutMs?: number } = {},
): TradingSession {
  const strategy = defineStrategy({
    name: 'scripted',
    description: 'Runs the steps of the test.',
    params: {},
    create(context) {
      let step = 0;
      return { onBar: () => onStep(step++, context) };
    },
  });
  return new TradingSession({
    symbols: ['X'],
    strategy,
    params: {},
    config: { ...ENGINE_DEFAULTS, ...options.config },
    timeoutMs: options.timeoutMs ?? Infinity,
  });
}

const [FIRST, SECOND, THIRD] = [...stepsOf([{ symbol: 'X', bars: bars(flat(3)) }])] as [
  Step,
  Step,
  Step,
];

const rest = ({ broker, instruments }: StrategyContext, limit: number): void => {
  broker.order({ instrument: instruments[0], side: 'buy', quantity: 1, type: 'limit', limit });
};

const resting = (order: number, limit: number) => ({
  order,
  symbol: 'X',
  side: 'buy',
  type: 'limit',
  time_in_force: 'gtc',
  quantity: 1,
  limit,
  filled: 0,
  triggered: false,
});

test('before its first bars a session has only its cash', () => {
  const session = scripted(() => {});
  const state = {
    status: 'running',
    time: null,
    seq: 0,
    cash: 100_000,
    equity: 100_000,
    positions: {},
    working: [],
    carry: {
      marks: {},
      risk: { peak_equity: 100_000, day_start_equity: 100_000, day: null },
    },
  };
  expect(session.state()).toEqual(state);
  expect(session.halt()).toEqual({ events: [], state: { ...state, status: 'halted' } });
});

test('push throws for late bars and for unknown instruments, and changes nothing', () => {
  const session = scripted((step, context) => rest(context, 10 + step));
  session.push(SECOND);
  const before = session.state();
  for (const step of [FIRST, SECOND, { time: THIRD.time, bars: { Z: THIRD.bars['X']! } }]) {
    expect(() => session.push(step)).toThrow(RangeError);
  }
  expect(session.state()).toEqual(before);
  expect(session.push(THIRD).state.working).toEqual([resting(1, 10), resting(2, 11)]);
});

test('the state counts the orders and cancels at its newest bars', () => {
  const session = scripted((step, context) => {
    if (step === 2) return;
    for (const order of context.broker.working()) context.broker.cancel(order);
    rest(context, 10);
  });
  const counts = [FIRST, SECOND, THIRD].map((step) => session.push(step).state.messages);
  expect(counts).toEqual([1, 2, undefined]);
});

describe('halt', () => {
  it('cancels every working order with an event each, and the session accepts no more bars', () => {
    const session = scripted((step, context) => rest(context, 10 + step));
    session.push(FIRST);
    session.push(SECOND);
    const closed = closeSession(session.state(), 'halted');
    const { events, state } = session.halt();
    expect(JSON.stringify(closed)).toBe(JSON.stringify({ events, state }));
    const time = new Date(SECOND.time).toISOString();
    const canceled = { time, kind: 'order.canceled', symbol: 'X', reason: 'halted' };
    expect(events).toEqual([
      { ...canceled, seq: 3, order: 1 },
      { ...canceled, seq: 4, order: 2 },
    ]);
    expect(state).toMatchObject({ status: 'halted', seq: 4, working: [] });
    expect(() => session.push(THIRD)).toThrow(
      expect.objectContaining({ code: 'conflict', message: expect.stringContaining('is halted') }),
    );
    expect(session.halt()).toEqual({ events: [], state });
  });

  it('has the same effect on a resumed session', async () => {
    const strategy = BUILT_IN_STRATEGIES.get('buy_and_hold')!;
    const setup = { ...ENGINE_DEFAULTS };
    const options = { symbols: ['X'], strategy, params: {}, config: setup, timeoutMs: Infinity };
    const session = new TradingSession(options);
    session.push(FIRST);
    const resumed = await TradingSession.resume(options, [FIRST]);
    expect(resumed.halt()).toEqual(session.halt());
    expect(stateHash(resumed.state())).toBe(stateHash(session.state()));
  });
});

test('the lines of a strategy belong to their bars, and a resumed session does not repeat them', async () => {
  const strategy = defineStrategy({
    name: 'own',
    description: 'Of a test.',
    params: {},
    create: ({ instruments: [asset], broker, log }) => ({
      onBar() {
        log(`bar ${asset.count}`);
        if (asset.count === 2) throw new Error(`cash ${broker.cash}`);
      },
    }),
  });
  const config = ENGINE_DEFAULTS;
  const setup = { symbols: ['X'], strategy, params: {}, config, timeoutMs: Infinity };
  const session = new TradingSession(setup);
  const progress = session.push(FIRST);
  expect(progress.log).toEqual(['bar 1']);
  expect(progressEvents(progress)).toEqual([
    { kind: 'strategy.log', occurred_at: FIRST.time, payload: { lines: ['bar 1'] } },
  ]);
  const resumed = await TradingSession.resume(setup, [FIRST]);
  expect(stateHash(resumed.state())).toBe(stateHash(session.state()));
  expect(resumed.push(SECOND)).toMatchObject({ log: ['bar 2'], state: { status: 'failed' } });
});

describe('a failing strategy', () => {
  it('that throws fails the session, whose working orders a halt still cancels', () => {
    const session = scripted((step, context) => {
      rest(context, 10 + step);
      if (step === 1) throw new TypeError('boom');
    });
    session.push(FIRST);
    const { events, state } = session.push(SECOND);
    expect(events).toMatchObject([{ kind: 'order.submitted', order: 2 }]);
    expect(state).toMatchObject({
      status: 'failed',
      time: new Date(SECOND.time).toISOString(),
      working: [resting(1, 10), resting(2, 11)],
    });
    expect(session.failure).toMatchObject({
      code: 'strategy_failed',
      message: expect.stringMatching(/scripted threw at bar 2 .*boom[^]*session\.test\.ts/),
    });
    expect(() => session.push(THIRD)).toThrow('is failed');
    const closed = closeSession(session.state(), 'halted');
    const halt = session.halt();
    expect(closed).toEqual(halt);
    expect(halt.events.map(({ kind, order }) => [kind, order])).toEqual([
      ['order.canceled', 1],
      ['order.canceled', 2],
    ]);
    expect(halt.state).toMatchObject({ status: 'failed', working: [] });
  });

  it('that does not return in time is stopped, and its pending callbacks cannot order', async () => {
    let refusal: unknown;
    const session = scripted(
      (step, context) => {
        rest(context, 10 + step);
        if (step === 0) return;
        setImmediate(() => {
          try {
            rest(context, 20);
          } catch (error) {
            refusal = error;
          }
        });
        for (;;);
      },
      { timeoutMs: 499.5 },
    );
    session.push(FIRST);
    const { state } = session.push(SECOND);
    expect(state).toMatchObject({ status: 'failed', working: [resting(1, 10), resting(2, 11)] });
    expect(session.failure).toMatchObject({
      code: 'strategy_timeout',
      message: 'strategy scripted did not return from bar 2 within 0.5 s',
    });
    await nextTurn();
    expect(refusal).toMatchObject({ message: expect.stringContaining('not after an await') });
    expect(session.halt().events.length).toBe(2);
    expect(session.state().working).toEqual([]);
  });

  it('that cannot be created fails the session at its first bars, and again on resume', async () => {
    const strategy = defineStrategy({
      name: 'stillborn',
      description: '',
      params: {},
      create(context) {
        rest(context, 10);
        throw new Error('boom');
      },
    });
    const config = ENGINE_DEFAULTS;
    const setup = { symbols: ['X'], strategy, params: {}, config, timeoutMs: Infinity };
    const session = new TradingSession(setup);
    expect(session.push(FIRST).state.status).toBe('failed');
    const resumed = await TradingSession.resume(setup, [FIRST]);
    expect(resumed.state()).toEqual(session.state());
    expect(session.failure).toMatchObject({ code: 'strategy_failed' });
    expect(resumed.failure).toMatchObject({ code: 'strategy_failed' });
    const closed = closeSession(session.state(), 'halted');
    expect(closed).toEqual(session.halt());
    expect(closed.state.time).toBe(new Date(FIRST.time).toISOString());
  });

  it('that loses everything ends its session as ruined', () => {
    const session = scripted(
      (step, { broker, instruments }) => {
        if (step === 0) broker.target(instruments[0], 2);
      },
      { config: { account: { model: 'margin', initial: 0.1, maintenance: 0 } } },
    );
    session.push(FIRST);
    session.push(SECOND);
    const crash = { open: 100, high: 100, low: 20, close: 20, volume: 1 };
    const { state } = session.push({ time: THIRD.time, bars: { X: crash } });
    expect(state).toMatchObject({ status: 'ruined', equity: -60_000 });
    expect(() => session.push({ time: THIRD.time + DAY, bars: { X: crash } })).toThrow('is ruined');
  });
});
