/**
 * Messages between the server and a strategy process, over its standard input and output. Each is
 * its length in bytes (32 bits, little-endian), followed by these bytes. The server does not trust
 * the process: it limits the size of each message and validates it with a schema.
 *
 * The server sends a `Setup`, serialized by V8, then bars before the run (see `warm-up-codec.ts`), and
 * then steps (see `step-codec.ts`). The process
 * replies in JSON. It answers the setup with `Loaded` or `Refused`, and steps with any number of
 * `Ordered`. The last of these has all steps done, or has failed.
 */
import { z } from 'zod';
import type { EngineConfig } from '../../engine/config.ts';
import { ORDER_TYPES, TIMES_IN_FORCE } from '../../engine/orders/order.ts';
import { LONGEST_LINE } from '../../engine/strategy-log.ts';

/** First message to the process. */
export interface Setup {
  /** Source text by path. */
  readonly files: Readonly<Record<string, string>>;
  /** Path of the module that exports the strategy. */
  readonly entry: string;
  readonly symbols: readonly string[];
  /** Names of the signals. Their values come with the bars. */
  readonly signals: readonly string[];
  /** Parameters as authored in the spec, without defaults. */
  readonly params: Readonly<Record<string, unknown>>;
  readonly config: EngineConfig;
  /** Other parameters for the first bars; see `forkStrategy`. */
  readonly past?: { readonly params: Setup['params']; readonly until: number } | undefined;
  /** Whether the process sends the lines that the strategy logs. */
  readonly keepsLog?: boolean | undefined;
  /** Longest time for one step of the strategy, ms. */
  readonly timeoutMs: number;
}

/** Longest message of the process. */
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

const count = z.number().min(0);
/** Infinity is null in JSON. */
const endless = z
  .number()
  .min(0)
  .nullable()
  .transform((entries) => entries ?? Infinity);

const Indicator = z.strictObject({
  label: upTo(1000),
  timeframe: upTo(10),
  barsPerEntry: count,
  warmUp: z.strictObject({
    ready: z.strictObject({ entries: count, days: count }),
    settled: z.strictObject({ entries: endless, days: count }),
  }),
});

const Loaded = z.strictObject({
  loaded: z.strictObject({
    name: upTo(100).regex(/^[a-z0-9]+(_[a-z0-9]+)*$/),
    description: upTo(1000),
    params: z.record(paramName, Param).refine((params) => Object.keys(params).length <= 100),
    instruments: z
      /** Without `max`, the count is unlimited. */
      .strictObject({ min: z.number().min(1), max: z.number().min(1).exactOptional() })
      .exactOptional(),
    signals: z.array(upTo(100)).max(100).exactOptional(),
    shorts: z.boolean().exactOptional(),
    /** Error that the `check` function of the strategy returned for the parameters. */
    check: upTo(1000).exactOptional(),
    /** Declared indicators for the parameters. */
    indicators: z.array(Indicator).max(1000).optional(),
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
/** Index of a step; −1 while the strategy is created, before the first step. */
const step = z.int().min(-1);

const Command = z.union([
  z.tuple([step, z.literal('target'), index, finite]),
  z.tuple([step, z.literal('cancel'), z.int().min(1)]),
  // A line that was cut ends with an ellipsis.
  z.tuple([step, z.literal('log'), upTo(LONGEST_LINE + 1)]),
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

/** A call of the strategy at a step: an order, a target weight, a cancel, or a logged line. */
export type Command = z.infer<typeof Command>;

const Ordered = z.strictObject({
  /** Count of completed steps since the start. */
  done: z.int().min(0),
  /** In the order of the calls. */
  commands: z.array(Command).max(MOST_COMMANDS),
  /** Failure in the step that follows the completed ones. */
  failed: Failure.exactOptional(),
});

export type Loaded = z.infer<typeof Loaded>['loaded'];
export type Failure = z.infer<typeof Failure>;
export type Ordered = z.infer<typeof Ordered>;

const First = z.union([Loaded, Refused]);

/** @returns undefined for an invalid message. */
export function readFirst(bytes: Uint8Array): z.infer<typeof First> | undefined {
  return First.safeParse(jsonOf(bytes)).data;
}

/** @returns undefined for an invalid message. */
export function readOrdered(bytes: Uint8Array): Ordered | undefined {
  return Ordered.safeParse(jsonOf(bytes)).data;
}

const UTF8 = new TextDecoder('utf-8', { fatal: true });
const PROTO_KEY = /"__proto__"\s*:/;

function jsonOf(bytes: Uint8Array): unknown {
  try {
    const text = UTF8.decode(bytes);
    // Rejected, because Zod ignores this key and no valid message has it. A logged line may contain it.
    return PROTO_KEY.test(text) ? undefined : (JSON.parse(text) as unknown);
  } catch {
    return undefined;
  }
}
