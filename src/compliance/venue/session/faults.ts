import type { Agenda } from './agenda.ts';
import type { RawMessage } from './messages.ts';

/**
 * `inbound` is what sessions send. `feed` is the market data before they are sent on both of its
 * sides, `feed_a` and `feed_b`; `recovery` is snapshots and replays.
 */
export type Stream = 'orders' | 'inbound' | 'drop_copy' | 'feed' | 'feed_a' | 'feed_b' | 'recovery';

export type FaultAction =
  /** Never said: no number is missing. Of an instrument's market data: it is frozen. */
  | { readonly kind: 'suppress' }
  /** Said so much later, and numbered then. */
  | { readonly kind: 'hold'; readonly ms: number }
  /** Lost on the way: its number is missing. */
  | { readonly kind: 'drop' }
  | { readonly kind: 'duplicate' }
  /** So much longer on the way: others may overtake it. */
  | { readonly kind: 'delay'; readonly ms: number }
  /** These fields in place of its own, or beside them, whatever the receiver knows of them. */
  | { readonly kind: 'patch'; readonly fields: Readonly<Record<string, unknown>> }
  /** Its time is off by so much. */
  | { readonly kind: 'shift_time'; readonly ms: number }
  /** Its text ends after so many characters. */
  | { readonly kind: 'truncate'; readonly length: number };

/** What is to go wrong with which messages: those of the stream to which all that is given applies. */
export interface Fault {
  readonly stream: Stream;
  readonly action: FaultAction;
  /** Of `orders`, `inbound` and `drop_copy`: name of the session, or of the account. */
  readonly whose?: string;
  readonly instrument?: string;
  /** The message's `type`, or the `exec_type` of an execution. */
  readonly type?: string;
  /** Said again after a resend request, or for the first time. */
  readonly is_resent?: boolean;
  /** Numbers of messages, both included; what is never or later said has none yet. */
  readonly seq?: readonly [from: number, to: number];
  /** ms since the epoch, both included. */
  readonly time?: readonly [from: number, to: number];
  /** Lets so many pass that it would apply to. */
  readonly skip?: number;
  /** Applies so often. */
  readonly count?: number;
  /** Applies with this probability, by the seed; always when absent. */
  readonly chance?: number;
}

/** As far as faults look at a message. */
interface Faulted {
  readonly type: string;
  readonly seq?: number;
  readonly exec_type?: string;
  readonly instrument?: string;
  readonly possibly_duplicate?: true;
}

interface Armed {
  readonly fault: Fault;
  readonly isSaying: boolean;
  seen: number;
}

/** Told of each fault as it applies to a message. */
export type OnFault = (fault: Fault, message: object) => void;

/** The scripted faults, and how messages fare on their way with them. */
export class Faults {
  readonly #agenda: Agenda;
  readonly #random: () => number;
  readonly #onFault: OnFault;
  readonly #armed = new Map<Stream, Armed[]>();

  constructor(agenda: Agenda, random: () => number, onFault: OnFault) {
    this.#agenda = agenda;
    this.#random = random;
    this.#onFault = onFault;
  }

  add(fault: Fault): void {
    const { kind } = fault.action;
    const armed = { fault, isSaying: kind === 'suppress' || kind === 'hold', seen: 0 };
    this.#armed.set(fault.stream, [...(this.#armed.get(fault.stream) ?? []), armed]);
  }

  clear(): void {
    this.#armed.clear();
  }

  /** Has a message said, now unless a fault says later or never. */
  say<T extends Faulted>(stream: Stream, whose: string, message: T, say: (said: T) => void): void {
    const { action } = this.#find(stream, whose, message, true) ?? {};
    if (action === undefined) say(message);
    else if (action.kind === 'hold') {
      this.#agenda.post(this.#agenda.now + action.ms, say, message);
    }
  }

  /** Brings a message, or what faults make of it, to whom it is for. @param latency ms. */
  send<T extends Faulted>(
    stream: Stream,
    whose: string,
    message: T,
    latency: number,
    deliver: (message: T | RawMessage) => void,
  ): void {
    const { action } = this.#find(stream, whose, message, false) ?? {};
    const at = this.#agenda.now + latency;
    if (action === undefined) this.#agenda.post(at, deliver, message);
    else if (action.kind === 'delay') this.#agenda.post(at + action.ms, deliver, message);
    else if (action.kind === 'duplicate') {
      this.#agenda.post(at, deliver, message);
      this.#agenda.post(at, deliver, message);
    } else if (action.kind !== 'drop') {
      this.#agenda.post(at, deliver, garble(message, action));
    }
  }

  #find(stream: Stream, whose: string, message: Faulted, isSaying: boolean): Fault | undefined {
    if (this.#armed.size === 0) return undefined;
    const all = this.#armed.get(stream) ?? [];
    for (const armed of all) {
      const { fault } = armed;
      if (armed.isSaying !== isSaying || !this.#applies(fault, whose, message)) continue;
      armed.seen += 1;
      const { skip = 0, count = Infinity, chance = 1 } = fault;
      if (armed.seen <= skip || armed.seen > skip + count) continue;
      if (chance < 1 && this.#random() >= chance) continue;
      this.#onFault(fault, message);
      return fault;
    }
    return undefined;
  }

  #applies(fault: Fault, whose: string, message: Faulted): boolean {
    const { now } = this.#agenda;
    const { type, seq, time, is_resent: isResent } = fault;
    const isWithin = (range: readonly [number, number] | undefined, value: number): boolean =>
      range === undefined || (value >= range[0] && value <= range[1]);
    return (
      (fault.whose === undefined || fault.whose === whose) &&
      (fault.instrument === undefined || fault.instrument === message.instrument) &&
      (type === undefined || type === message.type || type === message.exec_type) &&
      (isResent === undefined || isResent === (message.possibly_duplicate === true)) &&
      isWithin(seq, message.seq ?? 0) &&
      isWithin(time, now)
    );
  }
}

function garble<T extends Faulted>(message: T, action: FaultAction): T | RawMessage {
  if (action.kind === 'patch') return { ...message, ...action.fields };
  if (action.kind === 'shift_time') {
    const { time } = message as { readonly time?: number };
    return time === undefined ? message : { ...message, time: time + action.ms };
  }
  const text = JSON.stringify(message);
  return { type: 'raw', text: action.kind === 'truncate' ? text.slice(0, action.length) : text };
}
