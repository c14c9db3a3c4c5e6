import { BAR_COLUMNS, type BarColumn, type Bars } from '../../market/bars.ts';
import type { TimeframeName } from '../../market/timeframe.ts';
import { CoarseBars, type BarKind } from './coarse-bars.ts';
import type { EngineInstrument } from '../engine-setup.ts';
import { BarClock, CoarseClock, JointClock, type Clock, type Cursors } from './clock.ts';
import { startComputation, type Computation, type IndicatorKind } from './computation.ts';
import {
  Series,
  stateOf,
  type BarSeries,
  type Declarations,
  type Lines,
} from './declared-series.ts';
import { drawColumn, drawLine, namesOf, type ReturnedIndicator } from './returned-indicators.ts';
import { INDICATOR_KINDS } from '../indicators/indicator-kinds.ts';
import { PACKAGE_VERSION } from '../version.ts';
import type { SharedComputations } from './shared-computations.ts';
import { inTurn, ofWindow, together, type WarmUp } from './warm-up.ts';

/** The part of a run that its series read. */
export interface SeriesSource extends Cursors {
  readonly symbols: readonly string[];
  /** Bars of the run, in the order of the symbols. */
  readonly histories: readonly Bars[];
  /** The same, after the bars before the run. */
  readonly withWarmUp: readonly Bars[];
  /** Complete bars of longer timeframes before those, if any, in the order of the symbols. */
  readonly longer?: readonly EngineInstrument['longer'][];
  readonly config: BarKind;
}

/** A declared indicator, or bars of a longer timeframe, that no other indicator reads. */
export interface DeclaredIndicator {
  /** For example `ema(close,20)`. */
  readonly label: string;
  /** Timeframe of its entries; empty for the bars of the run. */
  readonly timeframe: string;
  /** Bars of the run in one entry, with the longest sessions. */
  readonly barsPerEntry: number;
  readonly warmUp: WarmUp;
}

/** An indicator of this run. */
interface Node extends Pick<DeclaredIndicator, 'label' | 'warmUp'> {
  readonly kind: Pick<IndicatorKind<never, unknown, string>, 'name' | 'lines'>;
  readonly computation: Computation;
  readonly clock: Clock;
  readonly inputs: readonly Series[];
  readonly lines: readonly Series[];
}

/**
 * The series of a run. A declaration that equals an earlier one returns the series of that one, so
 * that each indicator is computed once. Inputs are declared before the indicators that use them,
 * which makes the order of declarations an order of computation.
 */
export class SeriesGraph {
  /** In the order of the instruments. */
  readonly bars: readonly BarSeries[];
  readonly #source: SeriesSource;
  /** Instruments first, then longer timeframes. */
  readonly #barSeries: { readonly clock: BarClock | CoarseClock; readonly series: BarSeries }[] =
    [];
  readonly #coarseClocks = new Map<string, CoarseClock>();
  readonly #jointClocks = new Map<string, JointClock>();
  readonly #nodes: Node[] = [];
  readonly #declared = new Map<string, Lines<string>>();
  readonly #shared: SharedComputations | undefined;
  readonly #declarations: Declarations = Object.freeze({
    version: PACKAGE_VERSION,
    isClosed: () => this.#isClosed,
    declare: (kind: string, inputs: readonly Series[], params: readonly unknown[]) =>
      this.#declare(kind, inputs, params),
  });
  #isClosed = false;
  #returned: unknown;

  /** @param shared is extended by the computations of this run. */
  constructor(source: SeriesSource, shared?: SharedComputations) {
    this.#shared = shared;
    this.#source = source;
    const { histories, withWarmUp, config } = source;
    this.bars = withWarmUp.map(({ length }, index) => {
      const first = length - histories[index]!.length;
      const clock = new BarClock(withWarmUp, index, source, first);
      return this.#addBars(clock, clock, config.timeframe);
    });
  }

  /** Whether any series is of a longer timeframe or of several instruments. */
  get follows(): boolean {
    return this.#coarseClocks.size + this.#jointClocks.size > 0;
  }

  /** Ends the declarations. @param returned the result of `indicators` of the strategy */
  close(returned: unknown): void {
    this.#isClosed = true;
    this.#returned = returned;
    for (const { clock } of this.#barSeries) clock.begin();
    for (const clock of this.#jointClocks.values()) clock.begin();
  }

  /** The declared indicators, and bars of longer timeframes, that are not inputs of others. */
  get outputs(): readonly DeclaredIndicator[] {
    const inputs = new Set(this.#nodes.flatMap((node) => node.inputs));
    const coarse = this.#barSeries
      .filter(({ clock }) => clock instanceof CoarseClock)
      .map(({ clock, series }) => {
        const { drawing, warmUp } = stateOf(series.close);
        return {
          clock,
          label: drawing.owner,
          warmUp,
          lines: BAR_COLUMNS.map((name) => series[name]),
        };
      });
    return [...coarse, ...this.#nodes]
      .filter(({ lines }) => !lines.some((line) => inputs.has(line)))
      .map(({ label, warmUp, clock: { timeframe, barsPerEntry } }) => ({
        label,
        timeframe,
        barsPerEntry,
        warmUp,
      }));
  }

  /** Computes all series up to the bars of `time`. */
  extend(time: number): void {
    for (const { clock, series } of this.#barSeries) {
      clock.extend(time);
      for (const name of BAR_COLUMNS) stateOf(series[name]).column = clock.bars[name];
    }
    for (const clock of this.#jointClocks.values()) clock.extend();
    for (const { computation, clock, inputs, lines } of this.#nodes) {
      const columns = inputs.map((input) => stateOf(input).column);
      computation.extend(columns, clock.length, clock.capacity);
      lines.forEach((line, place) => {
        stateOf(line).column = computation.columns[place]!;
      });
    }
  }

  /** Moves series of longer timeframes and of several instruments to the current step. */
  advance(): void {
    for (const clock of this.#coarseClocks.values()) clock.advance();
    for (const clock of this.#jointClocks.values()) clock.advance();
  }

  /** The indicators that the strategy returned, in order of declaration. */
  returned(): ReturnedIndicator[] {
    const names = namesOf(this.#returned);
    return this.#nodes.flatMap(({ kind, label, clock, lines }) => {
      const found = lines.flatMap((series, place) => {
        const name = names.get(series);
        const { column, drawing } = stateOf(series);
        if (name === undefined || drawing.scale === 'none') return [];
        const values = column.subarray(0, clock.length);
        return [{ name, line: kind.lines[place]!, scale: drawing.scale, values }];
      });
      return found.length === 0
        ? []
        : [{ kind: kind.name, label, lines: found, bars: clock.entryBars() }];
    });
  }

  #addBars(
    clock: BarClock | CoarseClock,
    base: BarClock,
    timeframe: TimeframeName | undefined,
  ): BarSeries {
    const { symbols, config } = this.#source;
    const symbol = symbols[base.index]!;
    const owner = [
      ...(symbols.length === 1 ? [] : [symbol]),
      ...(clock === base ? [] : [`on('${timeframe}')`]),
    ].join('.');
    const columns = BAR_COLUMNS.map((name): [string, Series] => {
      const key = `${clock.key}.${name}`;
      const state = { declarations: this.#declarations, key, clock, warmUp: ofWindow(1) };
      const drawing = drawColumn(name, owner);
      return [name, new Series({ ...state, drawing, column: clock.bars[name] })];
    });
    const series = Object.freeze({
      symbol,
      timeframe,
      calendar: config.calendar ?? '24/7',
      on: (longer: TimeframeName) => this.#on(base, longer),
      ...(Object.fromEntries(columns) as Record<BarColumn, Series>),
    });
    this.#barSeries.push({ clock, series });
    return series;
  }

  #on(base: BarClock, timeframe: TimeframeName): BarSeries {
    if (this.#isClosed) {
      throw new Error(`on('${timeframe}') must be called in indicators(), before the run`);
    }
    const { config, longer } = this.#source;
    if (timeframe === config.timeframe) return this.bars[base.index]!;
    const key = `${base.key}@${timeframe}/${config.calendar ?? '24/7'}`;
    const known = this.#coarseClocks.get(key);
    if (known !== undefined) return this.#barSeries.find(({ clock }) => clock === known)!.series;
    const given = longer?.[base.index]?.[timeframe];
    const coarse = this.#shared?.coarse.get(key) ?? new CoarseBars(config, timeframe, given);
    this.#shared?.coarse.set(key, coarse);
    const clock = new CoarseClock(key, base, coarse);
    this.#coarseClocks.set(key, clock);
    return this.#addBars(clock, base, timeframe);
  }

  #declare(name: string, inputs: readonly Series[], params: readonly unknown[]): Lines<string> {
    if (this.#isClosed) {
      throw new Error(`${name} must be declared in indicators(), before the run`);
    }
    const kind = INDICATOR_KINDS.get(name);
    if (kind === undefined) throw new RangeError(`there is no indicator ${name}`);
    const clock = this.#clockOf(inputs);
    const aligned = inputs.map((input) => this.#align(input, clock));
    return this.#add(kind, clock, aligned, params);
  }

  #add<P extends readonly unknown[], M, L extends string>(
    kind: IndicatorKind<P, M, L>,
    clock: Clock,
    inputs: readonly Series[],
    params: P,
  ): Lines<L> {
    const args = [...inputs.map((input) => stateOf(input).key), ...params];
    const key = `${kind.name}(${args.join()})`;
    const known = this.#declared.get(key);
    if (known !== undefined) return known;
    const computation = this.#compute(key, kind, clock, params);
    const warmUp = inTurn(
      together(...inputs.map((input) => stateOf(input).warmUp)),
      kind.warmUp(...params),
    );
    const lines = kind.lines.map((line, place) => {
      const drawing =
        kind.name === ALIGNMENT
          ? stateOf(inputs[0]!).drawing
          : drawLine(kind, { line, key, inputs, params });
      const column = computation.columns[place]!;
      const declarations = this.#declarations;
      return new Series({ declarations, key: `${key}.${line}`, warmUp, clock, drawing, column });
    });
    const label = stateOf(lines[0]!).drawing.owner;
    this.#nodes.push({ kind, label, warmUp, computation, clock, inputs, lines });
    const byName = Object.fromEntries(kind.lines.map((line, place) => [line, lines[place]!]));
    const declared = Object.freeze(byName) as Lines<L>;
    this.#declared.set(key, declared);
    return declared;
  }

  /** The computation of an earlier run over the same bars, or a new one. */
  #compute<P extends readonly unknown[], M>(
    key: string,
    kind: IndicatorKind<P, M, string>,
    { capacity }: Clock,
    params: P,
  ): Computation {
    // An alignment continues only in the run whose clock it follows.
    if (this.#shared === undefined || kind.name === ALIGNMENT)
      return startComputation(kind, params);
    const known = this.#shared.find(key);
    if (known !== undefined) return known;
    const computation = startComputation(kind, params);
    const bytes = kind.lines.length * capacity * Float64Array.BYTES_PER_ELEMENT;
    this.#shared.add(key, computation, bytes);
    return computation;
  }

  #clockOf(inputs: readonly Series[]): Clock {
    const clocks = new Set(
      inputs.map((input) => {
        const { declarations, clock } = stateOf(input);
        if (declarations !== this.#declarations)
          throw new RangeError('an indicator has inputs of another run');
        return clock;
      }),
    );
    if (clocks.size === 1) return [...clocks][0]!;
    if (new Set([...clocks].map(({ timeframe }) => timeframe)).size > 1) {
      throw new RangeError(
        'an indicator has inputs of different timeframes; compare their values in onBar or wakeOn instead',
      );
    }
    const sources = [...clocks].sort((a, b) => (a.key < b.key ? -1 : 1));
    const joint = new JointClock(sources);
    const known = this.#jointClocks.get(joint.key);
    if (known !== undefined) return known;
    this.#jointClocks.set(joint.key, joint);
    return joint;
  }

  /** The entries of `input` at the steps of `clock`. */
  #align(input: Series, clock: Clock): Series {
    const { clock: own } = stateOf(input);
    if (own === clock || !(clock instanceof JointClock)) return input;
    return this.#add(alignment(clock, own), clock, [input], [clock.key]).value;
  }
}

const ALIGNMENT = 'at';

/** The entries of a series at the steps of a joint clock. */
function alignment(
  joint: JointClock,
  source: Clock,
): IndicatorKind<readonly [string], JointClock, 'value'> {
  return {
    name: ALIGNMENT,
    lines: ['value'],
    scale: 'input',
    start: () => joint,
    warmUp: () => ofWindow(1),
    fill(_, [input], [value], from, to) {
      const rows = joint.rowsOf(source);
      for (let at = from; at < to; at += 1) value[at] = input[rows[at]!]!;
    },
  };
}
