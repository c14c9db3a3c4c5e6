/** The peaks of what a bot or a firm sent, received and traded. */
import { formatInstant } from '../report/period.ts';
import { busiestWindow, Columns, orderInTime, type Series } from './windows.ts';

/** Outgoing messages, incoming messages about orders, and incoming market data. */
export const CLASSES = ['out', 'in_order', 'in_md'] as const;
export type MessageClass = (typeof CLASSES)[number];

/** Window lengths in seconds. RTS 6 names none, so they are our choice; the longest stands for a trading day. */
export const WINDOWS = [1, 60, 86_400] as const;
export type WindowSeconds = (typeof WINDOWS)[number];

export interface Mix {
  readonly kind: string;
  readonly instrument: string;
  readonly count: number;
}

export interface MessagePeak {
  readonly class: MessageClass;
  readonly window_s: WindowSeconds;
  /** Maximum number of messages in any window of that length. */
  readonly M: number;
  /** Start of the window, RFC 3339 UTC; null without messages. */
  readonly peak_ts: string | null;
  readonly instruments: readonly string[];
  /** The messages in that window, by kind and instrument. */
  readonly mix: readonly Mix[];
}

export interface VolumePeak {
  readonly measure: 'value' | 'quantity' | 'fills';
  /** Currency of a value, instrument of a quantity; null for fills. */
  readonly of: string | null;
  readonly window_s: WindowSeconds;
  readonly M: number;
  readonly peak_ts: string | null;
  readonly instruments: readonly string[];
}

export interface Peaks {
  readonly messages: readonly MessagePeak[];
  readonly volume: readonly VolumePeak[];
}

const OUT = {
  k8s: ['order.submitted', 'order.pending_cancel'],
  paper: ['order.submitted', 'order.canceled'],
};
const IN_ORDER = {
  k8s: ['venue.report'],
  paper: ['order.submitted', 'order.filled', 'order.canceled', 'order.expired', 'order.rejected'],
};
const FILL = 'order.filled';
const BARS = 'data.bars';

export const MESSAGE_KINDS: readonly string[] = [
  ...new Set([...OUT.k8s, ...OUT.paper, ...IN_ORDER.k8s, ...IN_ORDER.paper, BARS]),
];

/** Deployment target of a run. */
export type Target = 'k8s' | 'paper';

interface Event {
  readonly kind: string;
  readonly occurred_at: number;
  /** JSON object. */
  readonly payload: string;
}

/** Messages and fills of runs on one target. */
export class Activity {
  readonly #target: Target;
  /** Columns: time; index of kind and instrument in `keys`. */
  readonly #messages = { out: new Columns(2), in_order: new Columns(2), in_md: new Columns(2) };
  /** Columns: time; index of currency and instrument in `keys`; value; quantity. */
  readonly #fills = new Columns(4);
  readonly #keys = new Map<string, number>();
  readonly #names: (readonly [what: string, instrument: string])[] = [];

  constructor(target: Target) {
    this.#target = target;
  }

  get rows(): number {
    const { out, in_order, in_md } = this.#messages;
    return out.count + in_order.count + in_md.count + this.#fills.count;
  }

  /** @param currency the account currency of the bot. */
  add({ kind, occurred_at: time, payload }: Event, currency: string): void {
    const { status, bars, ...fields } = parsePayload(payload);
    const symbol = fields.symbol ?? '';
    const { out, in_order, in_md } = this.#messages;
    if (kind === BARS) {
      for (const instrument of Object.keys(bars ?? {}))
        in_md.push(time, this.#keyOf('bar', instrument));
      return;
    }
    if (OUT[this.#target].includes(kind)) out.push(time, this.#keyOf(kind, symbol));
    if (IN_ORDER[this.#target].includes(kind)) {
      // A venue report names only the order; its instrument is in another event.
      in_order.push(time, this.#keyOf(status === undefined ? kind : `report.${status}`, symbol));
    }
    if (kind === FILL) {
      const units = Math.abs(fields.quantity ?? 0);
      this.#fills.push(time, this.#keyOf(currency, symbol), units * (fields.price ?? 0), units);
    }
  }

  #keyOf(what: string, instrument: string): number {
    const key = `${what} ${instrument}`;
    const known = this.#keys.get(key);
    if (known !== undefined) return known;
    this.#keys.set(key, this.#names.length);
    return this.#names.push([what, instrument]) - 1;
  }

  async findPeaks(): Promise<Peaks> {
    return { messages: await this.#findMessagePeaks(), volume: await this.#findVolumePeaks() };
  }

  async #findMessagePeaks(): Promise<MessagePeak[]> {
    const peaks: MessagePeak[] = [];
    for (const one of CLASSES) {
      const [times, keys] = [this.#messages[one].column(0), this.#messages[one].column(1)];
      for (const { window_s, amount: M, from, isIn } of await findBusiest({ times })) {
        const mix = this.#countMix(keys, isIn);
        const instruments = [...new Set(mix.map(({ instrument }) => instrument))].filter(Boolean);
        const peak_ts = from === undefined ? null : formatInstant(from);
        peaks.push({ class: one, window_s, M, peak_ts, instruments: instruments.sort(), mix });
      }
    }
    return peaks;
  }

  /** @param isIn whether the message at an index counts. */
  #countMix(keys: Float64Array, isIn: (at: number) => boolean): Mix[] {
    const counts = new Map<number, number>();
    for (const [at, key] of keys.entries()) {
      if (isIn(at)) counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    return [...counts]
      .map(([key, count]) => {
        const [kind, instrument] = this.#names[key]!;
        return { kind, instrument, count };
      })
      .sort(
        (a, b) =>
          b.count - a.count || (`${a.kind} ${a.instrument}` < `${b.kind} ${b.instrument}` ? -1 : 1),
      );
  }

  async #findVolumePeaks(): Promise<VolumePeak[]> {
    const [times, keys] = [this.#fills.column(0), this.#fills.column(1)];
    const rows = [...times.keys()];
    const peaksOf = async (
      measure: VolumePeak['measure'],
      of: string | null,
      some: readonly number[],
      amounts?: Float64Array,
    ): Promise<VolumePeak[]> => {
      const series = {
        times: Float64Array.from(some, (row) => times[row]!),
        ...(amounts && { amounts: Float64Array.from(some, (row) => amounts[row]!) }),
      };
      const busiest = await findBusiest(series);
      return busiest.map(({ window_s, amount, from, isIn }) => {
        const own = some.filter((_, at) => isIn(at));
        const instruments = new Set(own.map((row) => this.#names[keys[row]!]![1]));
        return {
          measure,
          of,
          window_s,
          M: Number(amount.toPrecision(12)),
          peak_ts: from === undefined ? null : formatInstant(from),
          instruments: [...instruments].sort(),
        };
      });
    };
    const peaks = await peaksOf('fills', null, rows);
    // Values in different currencies, and quantities of different instruments, cannot be added.
    for (const [currency, some] of Map.groupBy(rows, (row) => this.#names[keys[row]!]![0])) {
      peaks.push(...(await peaksOf('value', currency, some, this.#fills.column(2))));
    }
    for (const [symbol, some] of Map.groupBy(rows, (row) => this.#names[keys[row]!]![1])) {
      peaks.push(...(await peaksOf('quantity', symbol, some, this.#fills.column(3))));
    }
    return peaks;
  }
}

/** Finds the busiest window of each length, between which other work of the thread continues. */
async function findBusiest(series: Series) {
  const { times } = series;
  const order = await orderInTime(times);
  const found = [];
  for (const window_s of WINDOWS) {
    await new Promise(setImmediate);
    const { amount, from } = busiestWindow(series, order, window_s * 1000);
    const isIn = (at: number): boolean =>
      from !== undefined && times[at]! >= from && times[at]! < from + window_s * 1000;
    found.push({ window_s, amount, from, isIn });
  }
  return found;
}

interface EventPayload {
  readonly symbol?: string;
  readonly status?: string;
  readonly quantity?: number;
  readonly price?: number;
  readonly bars?: object;
}

/** A payload that was tampered with may not be JSON; its event still counts as a message. */
function parsePayload(payload: string): EventPayload {
  try {
    return (JSON.parse(payload) as EventPayload | null) ?? {};
  } catch {
    return {};
  }
}
