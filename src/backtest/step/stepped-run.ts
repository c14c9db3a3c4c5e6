import { closest } from '../../base/closest.ts';
import { ServiceError } from '../../base/errors.ts';
import { isoTime } from '../../base/iso-time.ts';
import type { OrderEvent } from '../../engine/journal.ts';
import type { EntryBars } from '../../engine/series/clock.ts';
import { BAR_COLUMNS } from '../../market/bars.ts';
import type { Outcome } from '../backtest.ts';
import type { BacktestJob, JobInstrument } from '../job.ts';
import { drawdownsOf } from '../returns.ts';
import type { FindReader, Reader } from './expression.ts';

const PRICES = BAR_COLUMNS.filter((name) => name !== 'time');

/** State of a run after a step. Undefined numbers are null. */
export interface StepState {
  /** Counts from 1. */
  readonly bar: number;
  readonly bars: number;
  /** Opening time of the bar. */
  readonly time: string;
  /** Newest bar of each instrument; null before its first. */
  readonly instruments: Readonly<Record<string, InstrumentState | null>>;
  readonly indicators: Readonly<Record<string, number | null>>;
  readonly cash: number;
  readonly equity: number;
  readonly drawdown: number;
  /** Orders that wait for a fill, oldest first. */
  readonly working: readonly OrderEvent[];
  /** Events of this step. */
  readonly events: readonly OrderEvent[];
}

type InstrumentState = Readonly<Record<(typeof PRICES)[number] | 'position', number>>;

/** A run to walk through. */
export type Walked = Pick<Outcome, 'result' | 'indicators'>;

/**
 * A run that ended or failed, to walk through step by step. Since a run is deterministic, its state after a step is
 * the same as if it had stopped there.
 */
export class SteppedRun {
  readonly #outcome: Walked;
  readonly #instruments: readonly JobInstrument[];
  readonly #events: readonly OrderEvent[];
  /** Number of events up to the end of each step. */
  readonly #eventsUntil: Uint32Array;
  /** Index of the newest bar of each instrument after each step; −1 before its first. */
  readonly #rows: readonly Int32Array[];
  readonly #positions: readonly Float64Array[];
  readonly #cash: Float64Array;
  readonly #drawdown: Float64Array;
  /** Index of the last event of each order, by order. */
  readonly #lastOf = new Map<number, number>();
  readonly #readers: ReadonlyMap<string, Reader>;
  readonly #indicators: ReadonlyMap<string, Reader>;

  constructor({ instruments }: Pick<BacktestJob, 'instruments'>, outcome: Walked) {
    const { result } = outcome;
    const { time, equity, initialCash } = result;
    const column = (): Float64Array => new Float64Array(this.length);
    this.#outcome = outcome;
    this.#instruments = instruments;
    this.#events = [...result.journal.events()];
    this.#eventsUntil = new Uint32Array(this.length);
    this.#rows = instruments.map(({ bars }) => rowsAt(time, bars.time.subarray(0, bars.length)));
    this.#positions = instruments.map(column);
    this.#cash = column();
    this.#drawdown = drawdownsOf(equity, initialCash);
    this.#readEvents();
    this.#indicators = this.#indicatorReaders();
    this.#readers = new Map([
      ['bar', (step) => step + 1],
      ['time', (step) => time[step] ?? Number.NaN],
      ['equity', (step) => equity[step] ?? Number.NaN],
      ['drawdown', (step) => this.#drawdown[step] ?? Number.NaN],
      ['cash', (step) => this.#cash[step] ?? Number.NaN],
      ...instruments.flatMap((_, index) => this.#instrumentReaders(index)),
      ...this.#indicators,
    ]);
  }

  get length(): number {
    return this.#outcome.result.time.length;
  }

  /** Kinds of the events of a step. */
  kindsAt(step: number): OrderEvent['kind'][] {
    return this.#eventsAt(step).map(({ kind }) => kind);
  }

  /** @throws ServiceError `usage` with the names that exist */
  readonly find: FindReader = (name) => {
    const found = this.#readers.get(name);
    if (found !== undefined) return found;
    const names = [...this.#readers.keys()];
    const near = closest(name, names);
    throw new ServiceError('usage', `unknown name ${JSON.stringify(name)}`, {
      remedy: near === undefined ? `The names are: ${names.join(', ')}.` : `Did you mean ${near}?`,
    });
  };

  stateAt(step: number): StepState {
    const { time, equity } = this.#outcome.result;
    const instruments = this.#instruments.map(({ symbol, bars }, index) => {
      const row = this.#rows[index]![step]!;
      const prices = PRICES.map((name) => [name, bars[name][row]!]);
      const position = this.#positions[index]![step]!;
      return [symbol, row < 0 ? null : { ...Object.fromEntries(prices), position }];
    });
    const indicators = [...this.#indicators].map(([name, read]) => [name, orNull(read(step))]);
    return {
      bar: step + 1,
      bars: this.length,
      time: isoTime(time[step]!),
      instruments: Object.fromEntries(instruments) as StepState['instruments'],
      indicators: Object.fromEntries(indicators) as StepState['indicators'],
      cash: this.#cash[step]!,
      equity: equity[step]!,
      drawdown: this.#drawdown[step]!,
      working: this.#workingAt(step),
      events: this.#eventsAt(step),
    };
  }

  /** Fills the columns of positions and cash, which change only with bookings. */
  #readEvents(): void {
    const { time, initialCash } = this.#outcome.result;
    const held = new Map<string, number>();
    let cash = initialCash;
    let at = 0;
    for (let step = 0; step < this.length; step += 1) {
      const now = time[step]!;
      for (; at < this.#events.length && Date.parse(this.#events[at]!.time) <= now; at += 1) {
        const event = this.#events[at]!;
        this.#lastOf.set(event.order, at);
        if (!('cash' in event)) continue;
        cash = event.cash;
        held.set(event.symbol, event.position);
      }
      this.#eventsUntil[step] = at;
      this.#cash[step] = cash;
      for (const [index, { symbol }] of this.#instruments.entries()) {
        this.#positions[index]![step] = held.get(symbol) ?? 0;
      }
    }
  }

  #eventsAt(step: number): readonly OrderEvent[] {
    return this.#events.slice(this.#eventsUntil[step - 1] ?? 0, this.#eventsUntil[step]);
  }

  #workingAt(step: number): OrderEvent[] {
    const until = this.#eventsUntil[step]!;
    const submitted = this.#events.slice(0, until).filter(({ kind }) => kind === 'order.submitted');
    return submitted.filter(({ order }) => {
      const last = this.#lastOf.get(order)!;
      return last >= until || isOpen(this.#events[last]!);
    });
  }

  #instrumentReaders(index: number): [string, Reader][] {
    const { symbol, bars } = this.#instruments[index]!;
    const rows = this.#rows[index]!;
    const readers: [string, Reader][] = [
      ...PRICES.map((name): [string, Reader] => [
        name,
        (step) => bars[name][rows[step] ?? -1] ?? Number.NaN,
      ]),
      ['position', (step) => this.#positions[index]![step] ?? Number.NaN],
    ];
    const isAlone = this.#instruments.length === 1;
    return readers.flatMap(([name, read]) => [
      ...(isAlone ? [[name, read] as [string, Reader]] : []),
      [`${symbol}.${name}`, read],
    ]);
  }

  #indicatorReaders(): Map<string, Reader> {
    const readers = new Map<string, Reader>();
    for (const { label, lines, bars } of this.#outcome.indicators ?? []) {
      const [index, entries] = [...bars][0]!;
      const entryAt = entriesAt(this.#rows[index]!, entries, lines[0]!.values.length);
      for (const { name, values } of lines) {
        readers.set(name || label, (step) => values[entryAt[step] ?? -1] ?? Number.NaN);
      }
    }
    return readers;
  }
}

const orNull = (value: number): number | null => (Number.isFinite(value) ? value : null);

/** Whether an order still works after its last event. */
function isOpen({ kind }: OrderEvent): boolean {
  return kind === 'order.submitted' || kind === 'order.triggered';
}

/** Index of the newest of `own` at each of `times`, both ascending; −1 before the first. */
function rowsAt(times: Float64Array, own: Float64Array): Int32Array {
  const rows = new Int32Array(times.length);
  let row = -1;
  for (let step = 0; step < times.length; step += 1) {
    while (row + 1 < own.length && own[row + 1]! <= times[step]!) row += 1;
    rows[step] = row;
  }
  return rows;
}

/** Index of the newest of `count` entries at each step; −1 before the first. */
function entriesAt(rowAt: Int32Array, { before, rows }: EntryBars, count: number): Int32Array {
  let entry = -1;
  return rowAt.map((row) => {
    if (row < 0) return -1;
    for (; entry + 1 < count; entry += 1) {
      if ((rows?.[entry + 1] ?? entry + 1) > before + row) break;
    }
    return entry;
  });
}
