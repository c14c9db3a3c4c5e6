import type { EngineSetup } from './engine-setup.ts';
import type { Instrument } from './instrument.ts';
import { seededRandom } from './random.ts';
import type { RunState } from './run-state.ts';
import { SeriesGraph } from './series/series-graph.ts';
import type { BarSeries } from './series/declared-series.ts';
import { StrategyError } from './strategy-error.ts';
import type { Broker, StrategyRun } from './strategy.ts';
import { WakeUp } from './wake-up.ts';

/** Creates the strategy of a run, with its indicators, in the first step. @throws StrategyError */
export function startStrategy(
  { strategy, params: values, config, computations, ignoresWakeOn }: EngineSetup,
  run: RunState,
  broker: Broker,
): void {
  run.portfolio.date(run.now);
  // Copies, since a strategy that changes them would change this run or the next one.
  const params = Object.freeze({ ...values });
  const instruments = Object.freeze([...run.instruments]) as readonly [Instrument];
  try {
    let indicators: unknown;
    if (strategy.indicators !== undefined) {
      const series = new SeriesGraph(run, computations);
      indicators = strategy.indicators({
        params,
        instruments: series.bars as readonly [BarSeries],
      });
      run.series = series;
    }
    const condition = strategy.wakeOn?.(indicators, params);
    if (condition !== undefined && !ignoresWakeOn) run.wakeUp = new WakeUp(run, condition);
    run.series?.close(indicators);
    const random = seededRandom(config.seed);
    const log = (message: string): void => run.writeLog(message);
    const started = strategy.create({ params, instruments, indicators, broker, random, log });
    rejectAsync(started);
    run.strategy = started;
  } catch (error) {
    throw new StrategyError(0, run.now, error);
  }
}

/** Code after an `await` would run when the bar is over. */
function rejectAsync(run: StrategyRun): void {
  for (const name of ['onBar', 'onFill'] as const) {
    if (Object.prototype.toString.call(run[name]) === '[object AsyncFunction]') {
      throw new TypeError(`${name} must not be async: a bar is over when it returns`);
    }
  }
}
