/** The peaks of what a bot or a firm sent, received and traded. */
import { formatInstant } from '../report/period.ts';

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

interface Peak {
  readonly window_s: WindowSeconds;
  /** Maximum in any window of that length. */
  readonly M: number;
  /** Start of the window, RFC 3339 UTC; null for an empty log. */
  readonly peak_ts: string | null;
  readonly instruments: readonly string[];
}

export interface MessagePeak extends Peak {
  readonly class: MessageClass;
  /** The messages in the window, by kind and instrument. */
  readonly mix: readonly Mix[];
}

export interface VolumePeak extends Peak {
  readonly measure: 'value' | 'quantity' | 'fills';
  /** Currency of a value, instrument of a quantity; null for fills. */
  readonly of: string | null;
}

export interface Peaks {
  readonly messages: readonly MessagePeak[];
  readonly volume: readonly VolumePeak[];
}

/** Finds the messages of a class in a window among peaks, targets or results. */
export function findMessages<T extends Pick<MessagePeak, 'class' | 'window_s'>>(
  all: readonly T[],
  of: MessageClass,
  window_s: WindowSeconds,
): T | undefined {
  return all.find((one) => one.class === of && one.window_s === window_s);
}

/** Names a measure and its currency or instrument. */
export function nameVolume({ measure, of }: Pick<VolumePeak, 'measure' | 'of'>): string {
  return of === null ? measure : `${measure} of ${of}`;
}

/** Deployment target of a run. A paper session receives no venue reports, so its order events count instead. */
export type Target = 'k8s' | 'paper';

const OUT = {
  k8s: ['order.submitted', 'order.pending_cancel'],
  paper: ['order.submitted', 'order.canceled'],
};
const IN_ORDER = {
  k8s: ['venue.report'],
  paper: ['order.submitted', 'order.filled', 'order.canceled', 'order.expired', 'order.rejected'],
};

export const MESSAGE_KINDS: readonly string[] = [
  ...new Set([...Object.values(OUT), ...Object.values(IN_ORDER), 'data.bars'].flat()),
];

interface Event {
  readonly kind: string;
  readonly occurred_at: number;
  /** JSON object. */
  readonly payload: string;
}

/** The kind of a message, or the currency of a fill, and the instrument. */
type Key = readonly [kindOrCurrency: string, instrument: string];

/** Events whose amounts can be added, in columns, because there may be tens of millions. */
class Series {
  /** ms since the epoch. */
  readonly times: number[] = [];
  /** Never negative. */
  readonly amounts: number[] = [];
  readonly keys: Key[] = [];

  push(time: number, amount: number, key: Key): void {
    this.times.push(time);
    this.amounts.push(amount);
    this.keys.push(key);
  }
}

/** Messages and fills of runs on one target. */
export class Activity {
  readonly #target: Target;
  readonly #messages = { out: new Series(), in_order: new Series(), in_md: new Series() };
  readonly #fills = new Series();
  readonly #valuesByCurrency = new Map<string, Series>();
  readonly #quantitiesByInstrument = new Map<string, Series>();
  /** Equal keys are one object. */
  readonly #keys = new Map<string, Key>();

  constructor(target: Target) {
    this.#target = target;
  }

  /** Number of messages and fills. */
  get rows(): number {
    const all = [...Object.values(this.#messages), this.#fills];
    return all.reduce((sum, { times }) => sum + times.length, 0);
  }

  /** @param currency the account currency of the bot. */
  add({ kind, occurred_at: time, payload }: Event, currency: string): void {
    const { status, bars = {}, symbol = '', quantity = 0, price = 0 } = parsePayload(payload);
    const { out, in_order, in_md } = this.#messages;
    if (kind === 'data.bars') {
      for (const name of Object.keys(bars)) in_md.push(time, 1, this.#keyOf('bar', name));
      return;
    }
    if (OUT[this.#target].includes(kind)) out.push(time, 1, this.#keyOf(kind, symbol));
    if (IN_ORDER[this.#target].includes(kind)) {
      // A venue report names only the order; its instrument is in another event.
      in_order.push(time, 1, this.#keyOf(status === undefined ? kind : `report.${status}`, symbol));
    }
    if (kind === 'order.filled') {
      const units = Math.abs(quantity);
      const key = this.#keyOf(currency, symbol);
      this.#fills.push(time, 1, key);
      getSeries(this.#valuesByCurrency, currency).push(time, units * price, key);
      getSeries(this.#quantitiesByInstrument, symbol).push(time, units, key);
    }
  }

  #keyOf(...key: Key): Key {
    const name = key.join(' ');
    const known = this.#keys.get(name) ?? key;
    this.#keys.set(name, known);
    return known;
  }

  async findPeaks(): Promise<Peaks> {
    const messages: MessagePeak[] = [];
    for (const one of CLASSES) {
      for (const { keys, ...peak } of await findPeaks(this.#messages[one])) {
        messages.push({ class: one, ...peak, mix: countMix(keys) });
      }
    }
    const volume: VolumePeak[] = [];
    // Values in different currencies, and quantities of different instruments, cannot be added.
    for (const [measure, all] of [
      ['fills', [[null, this.#fills]]],
      ['value', this.#valuesByCurrency],
      ['quantity', this.#quantitiesByInstrument],
    ] as const) {
      for (const [of, series] of all) {
        for (const { keys: _, ...peak } of await findPeaks(series)) {
          volume.push({ measure, of, ...peak });
        }
      }
    }
    return { messages, volume };
  }
}

function getSeries(all: Map<string, Series>, of: string): Series {
  const series = all.get(of) ?? new Series();
  all.set(of, series);
  return series;
}

/** Finds the peak in windows of each length, between which other work of the thread continues. */
async function findPeaks(series: Series) {
  const rows = [...series.times.keys()].sort((a, b) => series.times[a]! - series.times[b]!);
  const times = rows.map((row) => series.times[row]!);
  const amounts = rows.map((row) => series.amounts[row]!);
  const peaks = [];
  for (const window_s of WINDOWS) {
    await new Promise(setImmediate);
    const { amount, first, end } = findBusiestWindow(times, amounts, window_s * 1000);
    const keys = rows.slice(first, end).map((row) => series.keys[row]!);
    const instruments = new Set(keys.map(([, instrument]) => instrument));
    peaks.push({
      window_s,
      M: Number(amount.toPrecision(12)),
      peak_ts: end === 0 ? null : formatInstant(times[first]!),
      instruments: [...instruments].filter(Boolean).sort(),
      keys,
    });
  }
  return peaks;
}

/**
 * Finds the window `[t, t + width)` with the exact maximum; fixed buckets could show as little as half of
 * it. Returns the earliest of equal windows, as the rows from `first` to before `end`.
 *
 * @param times whole milliseconds, ascending. @param amounts never negative. @param width ms.
 */
export function findBusiestWindow(
  times: readonly number[],
  amounts: readonly number[],
  width: number,
) {
  let busiest = { amount: 0, first: 0, end: 0 };
  let first = 0;
  let sum = 0;
  for (const [last, time] of times.entries()) {
    sum += amounts[last]!;
    for (; times[first]! <= time - width; first += 1) sum -= amounts[first]!;
    // A running sum accumulates rounding errors over millions of additions.
    if (sum > busiest.amount * (1 + 1e-12)) busiest = { amount: sum, first, end: last + 1 };
  }
  // Rows without an amount may follow.
  while (busiest.end > 0 && times[busiest.end]! < times[busiest.first]! + width) busiest.end += 1;
  return busiest;
}

function countMix(keys: readonly Key[]): Mix[] {
  const nameOf = ({ kind, instrument }: Mix): string => `${kind} ${instrument}`;
  return [...Map.groupBy(keys, (key) => key)]
    .map(([[kind, instrument], { length: count }]) => ({ kind, instrument, count }))
    .sort((a, b) => b.count - a.count || (nameOf(a) < nameOf(b) ? -1 : 1));
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
