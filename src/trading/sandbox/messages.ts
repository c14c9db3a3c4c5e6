/**
 * What the server and the process of a strategy tell each other, over its standard input and output.
 * Each message is its length in bytes (32 bits, little-endian) and so many bytes. The process is
 * trusted in nothing: each of its messages is bounded, and read by a schema.
 *
 * To the process: a `Setup`, serialized by V8, and then steps (see `steps.ts`). From it, in JSON: for
 * the setup `Loaded` or `Refused`, and for steps as many `Ordered` as it likes, the last of which is
 * done with them, or has failed.
 */
import { z } from 'zod';
import type { EngineConfig } from '../../engine/config.ts';
import { ORDER_TYPES, TIMES_IN_FORCE } from '../../engine/orders.ts';

/** What a process begins with. */
export interface Setup {
  /** Texts by path. */
  readonly files: Readonly<Record<string, string>>;
  /** The one that exports the strategy. */
  readonly entry: string;
  readonly symbols: readonly string[];
  /** What models say of each bar, by name; it comes with the bars. */
  readonly signals: readonly string[];
  /** As the spec gives them. */
  readonly params: Readonly<Record<string, unknown>>;
  readonly config: EngineConfig;
  /** Longest time the strategy may take over a step, ms. */
  readonly timeoutMs: number;
}

/** Of one message of the process. */
export const MOST_BYTES = 8 * 1024 * 1024;
const MOST_COMMANDS = 100_000;

const upTo = (most: number) => z.string().max(most);

const paramName = z.string().regex(/^[\w$-]{1,64}$/);
const description = upTo(1000).exactOptional();
const bound = z.number().exactOptional();
const numeric = { default: z.number(), min: bound, max: bound, description };
const Param = z.union([
  z.strictObject({ kind: z.enum(['integer', 'number']), ...numeric }),
  z.strictObject({
    kind: z.literal('choice'),
    default: upTo(100),
    choices: z.array(upTo(100)).max(100),
    description,
  }),
  z.strictObject({ kind: z.literal('flag'), default: z.boolean(), description }),
]);

const Loaded = z.strictObject({
  loaded: z.strictObject({
    name: upTo(100).regex(/^[a-z0-9]+(_[a-z0-9]+)*$/),
    description: upTo(1000),
    params: z.record(paramName, Param).refine((params) => Object.keys(params).length <= 100),
    instruments: z
      /** No `max` where any number will do. */
      .strictObject({ min: z.number().min(1), max: z.number().min(1).exactOptional() })
      .exactOptional(),
    signals: z.array(upTo(100)).max(100).exactOptional(),
    shorts: z.boolean().exactOptional(),
    /** What its `check` has against the parameters. */
    check: upTo(1000).exactOptional(),
  }),
});

const Failure = z.strictObject({
  code: z.enum(['strategy_failed', 'strategy_timeout', 'invalid_strategy']),
  message: upTo(4000),
  remedy: upTo(1000),
});

const Refused = z.strictObject({ refused: Failure });

const finite = z.number();
const exit = z.union([finite, z.strictObject({ percent: finite })]);
const index = z.int().min(0);
/** Before the first step, when the strategy is created, it is −1. */
const step = z.int().min(-1);

const Command = z.union([
  z.tuple([step, z.literal('target'), index, finite]),
  z.tuple([step, z.literal('cancel'), z.int().min(1)]),
  z.tuple([
    step,
    z.literal('order'),
    index,
    z.strictObject({
      side: z.enum(['buy', 'sell']),
      quantity: finite,
      type: z.enum(ORDER_TYPES).exactOptional(),
      limit: finite.exactOptional(),
      stop: finite.exactOptional(),
      trail: exit.exactOptional(),
      timeInForce: z.enum(TIMES_IN_FORCE).exactOptional(),
      postOnly: z.boolean().exactOptional(),
      reduceOnly: z.boolean().exactOptional(),
      takeProfit: exit.exactOptional(),
      stopLoss: exit.exactOptional(),
      ocoGroup: z.int().min(0).exactOptional(),
    }),
  ]),
]);

/** What a strategy does at a step: places an order, aims at a weight, cancels an order. */
export type Command = z.infer<typeof Command>;

const Ordered = z.strictObject({
  /** Steps taken since the beginning. */
  done: z.int().min(0),
  /** In the order in which they were given. */
  commands: z.array(Command).max(MOST_COMMANDS),
  /** It came to no end of the step after those that are done. */
  failed: Failure.exactOptional(),
});

export type Loaded = z.infer<typeof Loaded>['loaded'];
export type Failure = z.infer<typeof Failure>;
export type Ordered = z.infer<typeof Ordered>;

const First = z.union([Loaded, Refused]);

/** Undefined when it is no such message. */
export function readFirst(bytes: Uint8Array): z.infer<typeof First> | undefined {
  return First.safeParse(jsonOf(bytes)).data;
}

/** Undefined when it is no such message. */
export function readOrdered(bytes: Uint8Array): Ordered | undefined {
  return Ordered.safeParse(jsonOf(bytes)).data;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });

function jsonOf(bytes: Uint8Array): unknown {
  try {
    const text = UTF8.decode(bytes);
    // Schemas pass over it, and it is no name of anything here.
    return text.includes('__proto__') ? undefined : (JSON.parse(text) as unknown);
  } catch {
    return undefined;
  }
}
