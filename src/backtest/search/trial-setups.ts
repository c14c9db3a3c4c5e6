import { EngineMemory } from '../../engine/memory.ts';
import { SharedComputations } from '../../engine/series/shared-computations.ts';
import type { Strategy } from '../../engine/strategy.ts';
import { PermutedBars } from '../robustness/permuted-bars.ts';
import { runTrial, type Trial, type TrialResult, type TrialSetup } from './trial.ts';

/** Runs trials one after another, and keeps what successive trials over the same bars can share. */
export class TrialSetups {
  readonly #strategy: Strategy;
  readonly #shared: { readonly memory: EngineMemory; readonly computations: SharedComputations };
  #setups: readonly TrialSetup[] = [];
  #permutedBars: PermutedBars | undefined;
  /** The setup of the last trial, and what decides its bars; undefined after a change of setups. */
  #last: (Pick<Trial, 'permutation' | 'rung'> & { readonly setup: TrialSetup }) | undefined;

  /** @param columnBytes bound on the indicators that are kept for later trials */
  constructor(strategy: Strategy, columnBytes: number) {
    this.#strategy = strategy;
    this.#shared = {
      memory: new EngineMemory(),
      computations: new SharedComputations(columnBytes),
    };
  }

  /** @param hasTimeLimit whether the time limit of the setups applies */
  use(setups: readonly TrialSetup[], hasTimeLimit: boolean): void {
    // The watchdog starts a thread for each trial. Built-in strategies always return, so they need none.
    this.#setups = hasTimeLimit
      ? setups
      : setups.map((setup) => ({ ...setup, timeoutMs: Infinity }));
    this.#permutedBars = undefined;
    this.#last = undefined;
  }

  /** Number of bars of the last setup. */
  get bars(): number {
    return this.#setups.at(-1)!.instruments[0]!.bars.length;
  }

  run(trial: Trial): Promise<TrialResult> {
    return runTrial(this.#setupOf(trial), this.#strategy, trial, this.#shared);
  }

  #setupOf({ permutation, rung }: Trial): TrialSetup {
    const last = this.#last;
    if (last !== undefined && permutation === last.permutation && rung === last.rung) {
      return last.setup;
    }
    // They belong to other bars.
    this.#shared.computations.clear();
    let setup = this.#setups.at(rung ?? -1)!;
    if (permutation !== undefined) {
      this.#permutedBars ??= new PermutedBars(setup.instruments, setup.permutationSeed!);
      setup = { ...setup, instruments: this.#permutedBars.permute(permutation) };
    }
    this.#last = { permutation, rung, setup };
    return setup;
  }
}
