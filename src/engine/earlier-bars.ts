import { allocateBars, appendBars, type Bars } from '../market/bars.ts';
import type { TimeframeName } from '../market/timeframe.ts';
import type { EngineInstrument } from './engine-setup.ts';

/** Some of the bars before a run, which only declared indicators see. */
export interface EarlierPart {
  /** Keyed by symbol. */
  readonly bars: Readonly<Record<string, Bars>>;
  /** Timeframe of complete longer bars; absent for bars of the run. */
  readonly timeframe?: TimeframeName | undefined;
  /** Whether the bars follow the bars of earlier parts; by default, they replace them. */
  readonly continues?: boolean | undefined;
}

/** Collects the bars before a run from parts of them. */
export class EarlierBars {
  readonly #ofRun = new Map<string, Bars>();
  readonly #longer = new Map<TimeframeName, Map<string, Bars>>();

  add({ bars, timeframe, continues = false }: EarlierPart): void {
    if (!continues) this.clear();
    let known = timeframe === undefined ? this.#ofRun : this.#longer.get(timeframe);
    if (known === undefined) this.#longer.set(timeframe!, (known = new Map()));
    for (const [symbol, more] of Object.entries(bars)) {
      known.set(symbol, appendBars(known.get(symbol) ?? allocateBars(0), more));
    }
  }

  clear(): void {
    this.#ofRun.clear();
    this.#longer.clear();
  }

  of(symbol: string): Pick<EngineInstrument, 'warmUp' | 'longer'> {
    const longer = [...this.#longer].flatMap(([timeframe, bySymbol]) => {
      const bars = bySymbol.get(symbol);
      return bars === undefined ? [] : [[timeframe, bars] as const];
    });
    return {
      warmUp: this.#ofRun.get(symbol),
      ...(longer.length > 0 && { longer: Object.fromEntries(longer) }),
    };
  }
}

/** The bars before the runs of instruments, as parts. */
export function* earlierParts(instruments: readonly EngineInstrument[]): Generator<EarlierPart> {
  let continues = false;
  for (const { symbol, warmUp, longer } of instruments) {
    const byTimeframe = Object.entries({ '': warmUp, ...longer });
    for (const [name, bars] of byTimeframe) {
      if (bars === undefined || bars.length === 0) continue;
      const timeframe = name === '' ? undefined : (name as TimeframeName);
      yield { bars: { [symbol]: bars }, timeframe, continues };
      continues = true;
    }
  }
}
