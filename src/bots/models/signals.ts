/** Runs the models of a spec on bars, one at a time, the same in backtests and trading sessions. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { growingSignals, type Signals } from '../../engine/model-signals.ts';
import { stepsOf, type Step } from '../../engine/steps.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Bars } from '../../market/bars.ts';
import { featureOf } from './features.ts';
import type { Model } from './model.ts';
import { openModel, type RunningModel } from './runtime.ts';

export interface SignalFeed {
  /** Signals of all steps taken so far. */
  readonly signals: Signals;
  /**
   * Computes the signals of the next steps, oldest first, before the run uses them. If an input of a
   * model is not a finite number, its outputs are NaN.
   * @throws ServiceError `invalid_spec` with reason `invalid_model`, or `too_many_signals` if they
   *   need too much memory.
   */
  readonly take: (steps: readonly Step[]) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Signals of a run, 512 MiB. */
const MOST_VALUES = 2 ** 26;

/** Longest time without yielding to other work of the thread. */
const TURN_MS = 50;

/**
 * @param models with unique names of outputs.
 * @throws ServiceError as `openModel`.
 */
export async function openSignals(
  models: readonly Model[],
  symbols: readonly string[],
): Promise<SignalFeed> {
  const running: RunningModel[] = [];
  const close = async (): Promise<void> => {
    for (const model of running.splice(0)) await model.close();
  };
  try {
    for (const model of models) running.push(await openModel(model));
  } catch (error) {
    await close();
    throw error;
  }
  const names = models.flatMap(({ outputs }) => outputs.map(({ name }) => name));
  const { signals, append } = growingSignals(names, symbols.length);
  const features = symbols.map(() => models.map(({ inputs }) => inputs.map(featureOf)));
  let turnAt = performance.now();
  let values = 0;

  const compute = async (
    instrument: number,
    { time, bars }: Step,
    symbol: string,
  ): Promise<void> => {
    // A symbol may have the name of an inherited property such as `toString`.
    if (!Object.hasOwn(bars, symbol)) return;
    const bar = bars[symbol]!;
    const computed: number[] = [];
    for (const [at, model] of models.entries()) {
      const isSingle = model.input.type === 'float32';
      const row = features[instrument]![at]!.map((feature) => {
        const value = feature(bar, time);
        return isSingle ? Math.fround(value) : value;
      });
      const isKnown = row.every(Number.isFinite);
      computed.push(
        ...(isKnown ? await running[at]!.run(row) : model.outputs.map(() => Number.NaN)),
      );
    }
    values += computed.length;
    if (values > MOST_VALUES) throw tooMany();
    append(instrument, computed);
  };
  return {
    signals,
    async take(steps) {
      for (const step of steps) {
        for (const [instrument, symbol] of symbols.entries())
          await compute(instrument, step, symbol);
        if (performance.now() - turnAt < TURN_MS) continue;
        await nextTurn();
        turnAt = performance.now();
      }
    },
    close,
  };
}

function tooMany(): ServiceError {
  return new ServiceError('invalid_spec', `the models compute more than ${MOST_VALUES} numbers`, {
    reason: 'too_many_signals',
    remedy: 'Use fewer bars, symbols or outputs.',
  });
}

/**
 * Computes the signals of whole histories; `undefined` if there are no models.
 * @throws ServiceError as `openSignals`; the reason of an aborted `signal`.
 */
export async function signalsOver(
  models: readonly Model[],
  instruments: readonly { readonly symbol: string; readonly bars: Bars }[],
  signal?: AbortSignal,
): Promise<Signals | undefined> {
  if (models.length === 0) return undefined;
  const symbols = instruments.map(({ symbol }) => symbol);
  const { signals, take, close } = await openSignals(models, symbols);
  try {
    for (const step of stepsOf(instruments)) {
      await take([step]);
      signal?.throwIfAborted();
    }
    return signals;
  } finally {
    await close();
  }
}
