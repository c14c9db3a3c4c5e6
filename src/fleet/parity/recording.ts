/** Reads a paper session from the rows of its bot's log. */
import { type ChainHead, entryFault } from '../../base/hash-chain.ts';
import { EarlierBars } from '../../engine/earlier-bars.ts';
import type { OrderEvent } from '../../engine/journal.ts';
import type { EngineInstrument } from '../../engine/engine-setup.ts';
import { hashOf, type EventFault } from '../../events/event.ts';
import { allocateBars, appendBar, type Bars } from '../../market/bars.ts';
import type { BotEventsTable } from '../../storage/tables.ts';
import { parseInput, warmUpOf } from '../../trading/session-events.ts';
import type { DataEvent } from '../../trading/feed.ts';
import { SUPERVISION_KINDS, type SupervisionInput } from '../../trading/session-supervision.ts';
import type { SessionState } from '../../events/session-state.ts';
import type { RecordedSupervision } from './rerun.ts';

/** Bars of an instrument. A run has its instruments in the order of the universe. */
export type Instrument = EngineInstrument;

/** An event of the engine, as a line of `events.ndjson`. */
export interface RecordedOrder {
  /** Sequence number in the log of the bot. */
  readonly seq: number;
  readonly line: string;
}

/** How a session ended; undefined while it runs. */
type SessionEnd = 'success' | 'halt' | 'stop' | 'failure' | undefined;

/** Missing bars within the usual hours of the market. */
export type RecordedGap = Omit<Extract<DataEvent, { readonly kind: 'data.gap' }>, 'kind'>;

export interface RecordedRun {
  readonly instruments: readonly Instrument[];
  readonly orders: readonly RecordedOrder[];
  readonly gaps: readonly RecordedGap[];
  readonly supervision: readonly RecordedSupervision[];
  /** Engine versions on which the session ran. */
  readonly engines: ReadonlySet<string>;
  readonly status: SessionState['status'];
  readonly end: SessionEnd;
  /** First altered or missing event of the bot; later events are ignored. */
  readonly fault: EventFault | undefined;
}

/** `[open, high, low, close, volume]` by symbol. */
type Candles = Readonly<Record<string, readonly [number, number, number, number, number]>>;

/** Collects a session from the rows of the log since its first event, including rows of other runs. */
export class Recording {
  readonly #run_id: string;
  readonly #bars: Map<string, Bars>;
  readonly #earlier = new EarlierBars();
  readonly #orders: RecordedOrder[] = [];
  readonly #gaps: RecordedGap[] = [];
  readonly #supervision: RecordedSupervision[] = [];
  #time: number | undefined;
  readonly #engines = new Set<string>();
  #status: SessionState['status'] = 'running';
  #isUnwanted = false;
  #end: SessionEnd;
  #last: ChainHead;
  #fault: EventFault | undefined;

  /** @param before the event before the first event of the run. */
  constructor(run_id: string, symbols: readonly string[], before: ChainHead) {
    this.#run_id = run_id;
    this.#bars = new Map(symbols.map((symbol) => [symbol, allocateBars(0)]));
    this.#last = before;
  }

  take(rows: readonly BotEventsTable[]): void {
    for (const row of rows) {
      this.#fault ??= entryFault(row, this.#last, hashOf);
      if (this.#fault !== undefined) return;
      this.#last = { seq: row.seq, hash: row.hash };
      if (row.run_id === this.#run_id) this.#add(row);
    }
  }

  /** @param end sequence number of the last expected event. */
  finish(end: number): RecordedRun {
    const { seq } = this.#last;
    if (seq < end) this.#fault ??= { seq: seq + 1, fault: 'missing' };
    return {
      instruments: [...this.#bars].map(([symbol, bars]) => ({
        symbol,
        bars,
        ...this.#earlier.of(symbol),
      })),
      orders: this.#orders,
      gaps: this.#gaps,
      supervision: this.#supervision,
      engines: this.#engines,
      status: this.#status,
      end: this.#end,
      fault: this.#fault,
    };
  }

  #add({ kind, payload: text, seq, occurred_at }: BotEventsTable): void {
    if (isOrder(kind)) {
      this.#orders.push({ seq, line: text });
    } else if (kind === 'data.bars') {
      const { bars } = JSON.parse(text) as { readonly bars: Candles };
      this.#time = occurred_at;
      for (const [symbol, [open, high, low, close, volume]] of Object.entries(bars)) {
        const candle = { open, high, low, close, volume };
        this.#bars.set(symbol, appendBar(this.#bars.get(symbol)!, occurred_at, candle));
      }
    } else if (kind === 'data.warm_up') {
      this.#earlier.add(warmUpOf(text));
    } else if (isSupervisionInput(kind)) {
      this.#supervision.push({ after: this.#time, input: parseInput(kind, text) });
    } else if (kind === 'data.gap') {
      this.#gaps.push(JSON.parse(text) as RecordedGap);
    } else if (kind === 'session.state') {
      ({ status: this.#status } = JSON.parse(text) as SessionState);
    } else if (kind === 'run.started') {
      const { engine } = JSON.parse(text) as { readonly engine?: string };
      if (engine !== undefined) this.#engines.add(engine);
    } else if (kind === 'run.stop_requested' || kind === 'run.cancel_requested') {
      this.#isUnwanted = true;
    } else if (kind === 'run.ended') {
      this.#end = endOf(JSON.parse(text) as Ended, this.#isUnwanted);
    }
  }
}

interface Ended {
  readonly status: 'success' | 'failed' | 'canceled';
  readonly halt?: object;
  /** Whether the run ended early by request, with a result. */
  readonly stopped?: boolean;
}

/** @param isUnwanted whether the end of the run was requested. */
function endOf({ status, halt, stopped = false }: Ended, isUnwanted: boolean): SessionEnd {
  if (status === 'failed') return 'failure';
  if (status === 'success') return stopped ? 'stop' : 'success';
  // A run that ended without a worker does not name its halt.
  return halt === undefined && isUnwanted ? 'stop' : 'halt';
}

function isSupervisionInput(kind: string): kind is SupervisionInput['kind'] {
  return (SUPERVISION_KINDS as readonly string[]).includes(kind);
}

function isOrder(kind: string): kind is OrderEvent['kind'] {
  return kind.startsWith('order.') || kind.startsWith('account.');
}
