/** A fault of a request or a pushed message. */
export type FaultAction =
  /** The connection breaks, or with `isSilent` hangs, before the request arrives. */
  | { readonly kind: 'lost_before'; readonly isSilent?: true }
  /** The same after the request has taken effect, or `lateMs` before it does. */
  | { readonly kind: 'lost_after'; readonly isSilent?: true; readonly lateMs?: number }
  /** The request takes effect; the response comes after `ms`. */
  | { readonly kind: 'slow'; readonly ms: number }
  /** The request takes effect; the response never ends. */
  | { readonly kind: 'half' }
  /** Responds with this status; `done` is whether the request takes effect. */
  | {
      readonly kind: 'status';
      readonly status: number;
      readonly body?: object;
      readonly headers?: Readonly<Record<string, string>>;
      readonly done?: boolean;
    }
  /** A pushed message is lost, repeated, or arrives later, possibly behind newer ones. */
  | { readonly kind: 'drop' }
  | { readonly kind: 'duplicate' }
  | { readonly kind: 'delay'; readonly ms: number }
  /** Replaces these fields of a response or pushed message. */
  | { readonly kind: 'patch'; readonly fields: Readonly<Record<string, unknown>> }
  /** The list in a response lacks its last item. */
  | { readonly kind: 'drop_last' }
  /** The text of a response or pushed message ends after this many characters. */
  | { readonly kind: 'truncate'; readonly length: number };

export interface Fault {
  /**
   * A call such as `POST /order`, the type of a pushed message such as `executionReport` or `kline`,
   * `requests` or `pushed` for all of them, or `connect` for a stream that is opened.
   */
  readonly on: string;
  readonly action: FaultAction;
  /** Affects only messages with these fields, such as `{x: 'TRADE'}` or `{symbol: 'BTCUSDT'}`. */
  readonly where?: Readonly<Record<string, unknown>>;
  /** Number of matching messages that pass before it takes effect. */
  readonly skip?: number;
  /** Share of the matching messages that it affects, at random; all by default. */
  readonly share?: number;
  /** Number of messages that it affects. */
  readonly count?: number;
  /** Period in which it takes effect, ms since the epoch, inclusive. */
  readonly time?: readonly [from: number, to: number];
}

/** Faults that are in effect, oldest first. */
export class Faults {
  readonly #random: () => number;
  #armed: { readonly fault: Fault; seen: number }[] = [];

  /** @param random decides which of the messages a fault with a `share` affects. */
  constructor(random: () => number) {
    this.#random = random;
  }

  add(fault: Fault): void {
    this.#armed.push({ fault, seen: 0 });
  }

  clear(): void {
    this.#armed = [];
  }

  /**
   * The first fault that affects a message; counts the message.
   *
   * @param fields returns the parameters of a request, or a pushed message.
   */
  find(names: readonly string[], fields: () => object, now: number): Fault | undefined {
    return this.#armed.find((armed) => {
      const { on, where, time = [-Infinity, Infinity], skip = 0, count = Infinity } = armed.fault;
      const { share } = armed.fault;
      if (!names.includes(on) || now < time[0] || now > time[1]) return false;
      if (where !== undefined && !hasFields(fields(), where)) return false;
      if (share !== undefined && this.#random() >= share) return false;
      armed.seen += 1;
      return armed.seen > skip && armed.seen <= skip + count;
    })?.fault;
  }
}

type Fields = Readonly<Record<string, unknown>>;

function hasFields(message: object, where: Fields): boolean {
  return Object.entries(where).every(([name, value]) => (message as Fields)[name] === value);
}

/** The message with the fields of a `patch`, whose objects are merged, or without its last item. */
export function changedBy(action: FaultAction | undefined, message: object): object {
  if (action?.kind === 'drop_last') return (message as readonly unknown[]).slice(0, -1);
  return action?.kind === 'patch' ? merge(message as Fields, action.fields) : message;
}

function merge(message: Fields, fields: Fields): object {
  const isObject = (value: unknown): value is Fields =>
    typeof value === 'object' && value !== null && !Array.isArray(value);
  const merged = Object.entries(fields).map(([name, value]) => {
    const own = message[name];
    return [name, isObject(value) && isObject(own) ? merge(own, value) : value];
  });
  return { ...message, ...Object.fromEntries(merged) };
}

/** Text of a message, cut off by a `truncate`. */
export function textOf(message: unknown, action: FaultAction | undefined): string {
  const text = JSON.stringify(message);
  return action?.kind === 'truncate' ? text.slice(0, action.length) : text;
}
