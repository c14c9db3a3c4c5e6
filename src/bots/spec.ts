import { z } from 'zod';
import { METRIC_NAMES } from '../backtest/gates.ts';
import {
  NO_RISK_LIMITS,
  type EngineConfig,
  type FeeModel,
  type FillModel,
  type OptionalLimits,
  type RiskLimits,
} from '../engine/config.ts';
import type { Problem } from '../base/errors.ts';
import { SYMBOL, SYMBOL_RULE } from '../market/symbol.ts';
import { TIMEFRAME_NAMES } from '../market/timeframe.ts';
import { parseWindow } from '../market/time.ts';
import { FEATURE_COLUMNS, INDICATOR_NAMES } from './models/features.ts';
import { AGENT_TOOLS, EVERY, EVERY_EXPECTED, isEvery } from './agents.ts';

/** What a wrong value is called where the schema's own words would not help. */
export const SPECIAL_PROBLEMS = z.registry<{
  readonly of: (value: unknown) => Pick<Problem, 'code' | 'message'> | undefined;
}>();

/** A YAML number passes through a float before anyone can look at its digits, so money is a text. */
const decimal = (pattern: RegExp, expected: string) =>
  z
    .string()
    .max(40)
    .regex(pattern, expected)
    .register(SPECIAL_PROBLEMS, {
      of: (value) =>
        typeof value === 'number'
          ? { code: 'unquoted_money', message: 'must be a decimal number in quotes' }
          : undefined,
    });

const amount = decimal(/^\d+(\.\d+)?$/, 'must be a decimal number such as "0.5"');
const positiveAmount = decimal(
  /^(?=.*[1-9])\d+(\.\d+)?$/,
  'must be a decimal number above 0 such as "100000"',
);
const shareAmount = decimal(
  /^(0(\.\d+)?|1(\.0+)?)$/,
  'must be a decimal number from 0 to 1 such as "0.001" for 0.1 %',
);

const CONTROL_CHARACTER = /\p{Cc}/u;
const CONTROL_CHARACTER_IN_PARAGRAPHS = /[^\P{Cc}\n\t]/u;

/** Text that does nothing to the terminal or the file that it is shown in. */
const text = (most: number, forbidden = CONTROL_CHARACTER) =>
  z
    .string()
    .min(1)
    .max(most)
    .refine((value) => !forbidden.test(value), 'must hold no control characters');
const path = text(1000);

const map = <V extends z.ZodType>(name: z.ZodString, value: V, most: number) =>
  z
    .record(name, value)
    .refine((entries) => Object.keys(entries).length <= most, `must have at most ${most} entries`)
    .meta({ maxProperties: most });

/** A share of something: above 0, at most 1. */
const share = z.number().gt(0).max(1);

const time = z
  .string()
  .refine(isTime, 'must be a real date such as 2000-01-03, or a time such as 2020-04-17T14:30:00Z')
  .meta({ pattern: String.raw`^\d{4}-\d{2}-\d{2}` });

function isTime(value: string): boolean {
  try {
    return parseWindow(value, undefined).from > -Infinity;
  } catch {
    return false;
  }
}

const symbol = z.string().regex(SYMBOL, SYMBOL_RULE);

const metadataSchema = z.strictObject({
  name: text(120).describe('What people call the bot.'),
  slug: z
    .string()
    .max(64)
    .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'must be lower-case words joined by hyphens')
    .describe('What files and commands call the bot: lower-case words joined by hyphens.'),
  labels: map(text(64), text(256), 100)
    .optional()
    .describe('Names and values of your own, for finding bots.'),
  owner: text(120).optional().describe('Who answers for the bot.'),
  description: text(4000, CONTROL_CHARACTER_IN_PARAGRAPHS).optional(),
});

const universeSchema = z.strictObject({
  symbols: z
    .array(symbol)
    .min(1)
    .max(500)
    .describe('The instruments, in the order in which the strategy sees them.'),
  currency: z
    .string()
    .regex(/^[A-Z][A-Z0-9]{1,9}$/, 'must be a currency code such as USD')
    .describe('The currency of the account and of every price.'),
});

const columnsSchema = z
  .strictObject({
    time: text(200).optional(),
    open: text(200).optional(),
    high: text(200).optional(),
    low: text(200).optional(),
    close: text(200).optional(),
    volume: text(200).optional(),
  })
  .describe('Header names in the file, where they are not among the usual spellings.');

export const dataSchema = z
  .strictObject({
    source: path
      .optional()
      .describe('CSV or Parquet file of the one symbol, relative to this file.'),
    sources: map(symbol, path, 500)
      .optional()
      .describe('CSV or Parquet file of each symbol, relative to this file.'),
    timeframe: z.enum(TIMEFRAME_NAMES).describe('Length of a bar. Finer data are resampled to it.'),
    from: time.optional().describe('First UTC day or time used; by default the first there is.'),
    to: time
      .optional()
      .describe('Last UTC day (all of it) or time used; by default the last there is.'),
    columns: columnsSchema.optional(),
    repair: z
      .literal('drop')
      .optional()
      .describe('drop: leave out rows that cannot be right. By default such data are refused.'),
  })
  .meta({ oneOf: [{ required: ['source'] }, { required: ['sources'] }] });

const strategySchema = z
  .strictObject({
    name: text(100).optional().describe('A built-in strategy.'),
    module: path
      .regex(/\.(ts|js|mjs)$/, 'must be a .ts, .js or .mjs file')
      .optional()
      .describe('File of your own strategy, relative to this file.'),
    params: map(text(100), z.union([z.number(), z.string().max(1000), z.boolean()]), 100)
      .default({})
      .describe("Values of the strategy's parameters; its defaults for the rest."),
  })
  .meta({ oneOf: [{ required: ['name'] }, { required: ['module'] }] });

const DEFAULT_VOLUME_LIMIT = 0.025;

const model = <const T extends string>(name: T) => z.literal(name);

const fillSchema = z.union([
  z.enum(['next_open', 'ohlc_path', 'volume_share']),
  z.discriminatedUnion('model', [
    z.strictObject({ model: model('next_open') }),
    z.strictObject({ model: model('ohlc_path') }),
    z.strictObject({
      model: model('volume_share'),
      limit: share
        .default(DEFAULT_VOLUME_LIMIT)
        .describe("Share of a bar's volume that may be taken."),
    }),
  ]),
]);

const minimumFee = amount.default('0').describe('Least fee of one fill, account currency.');

const feesSchema = z.discriminatedUnion('model', [
  z.strictObject({ model: model('none') }),
  z.strictObject({
    model: model('percent'),
    rate: shareAmount.describe('Share of the value traded: "0.001" is 0.1 %.'),
    min: minimumFee,
  }),
  z.strictObject({
    model: model('per_share'),
    rate: amount.describe('Account currency per unit.'),
    min: minimumFee,
  }),
]);

const slippageSchema = z.discriminatedUnion('model', [
  z.strictObject({ model: model('none') }),
  z.strictObject({
    model: model('basis_points'),
    bps: z.number().min(0).lt(10_000).describe('Hundredths of a percent, against the order.'),
  }),
  z.strictObject({
    model: model('volume_share'),
    impact: z
      .number()
      .min(0)
      .lt(1)
      .describe('Share of the price, times the square of the share of the volume taken.'),
  }),
]);

const accountSchema = z.union([
  model('cash'),
  z.discriminatedUnion('model', [
    z.strictObject({ model: model('cash') }),
    z.strictObject({
      model: model('margin'),
      initial: share.describe('Equity needed per unit of exposure to open: 0.5 is 2:1.'),
      maintenance: share.describe('Equity per unit of exposure below which all is closed.'),
    }),
  ]),
]);

const engineSchema = z.strictObject({
  cash: positiveAmount.default('100000').describe('Account currency at the start.'),
  fill: fillSchema
    .default('next_open')
    .describe(
      "next_open: at the next bar's open. ohlc_path: along the path of the bar. volume_share: at " +
        'the next open, up to a share of its volume.',
    ),
  units: z
    .enum(['fractional', 'whole'])
    .default('fractional')
    .describe('whole: quantities are rounded down to whole units.'),
  fees: feesSchema.prefault({ model: 'none' }),
  slippage: slippageSchema.default({ model: 'none' }),
  account: accountSchema
    .default('cash')
    .describe('cash: long only, paid in full. margin: long and short.'),
  seed: z
    .int()
    .min(0)
    .max(0xffff_ffff)
    .default(0)
    .describe("Seed of the strategy's random numbers."),
});

const metricSchema = z.enum(METRIC_NAMES).register(SPECIAL_PROBLEMS, {
  of: (value) =>
    typeof value === 'string'
      ? { code: 'unknown_metric', message: `no metric ${JSON.stringify(value)}` }
      : undefined,
});

const gateSchema = z
  .strictObject({
    name: metricSchema.describe('A statistic of the result.'),
    min: z.number().optional().describe('The result passes at this value and above.'),
    max: z.number().optional().describe('The result passes at this value and below.'),
  })
  .meta({ anyOf: [{ required: ['min'] }, { required: ['max'] }] });

const limited = <T extends z.ZodType>(value: T) =>
  z
    .union([
      value,
      z.strictObject({ unlimited: text(400).describe('Why there is no such limit.') }),
    ])
    .optional();

const windowSeconds = z.number().gt(0).max(31_536_000).describe('Seconds of bar time.');

const riskSchema = z
  .strictObject({
    max_order_value: limited(positiveAmount).describe('Account currency per order.'),
    max_order_qty: limited(positiveAmount).describe('Units per order.'),
    price_collar_bps: limited(z.number().gt(0).max(10_000)).describe(
      'Distance of a limit or stop price from the last close, basis points.',
    ),
    max_messages_per_second: limited(z.number().gt(0)).describe('Orders and cancels per second.'),
    max_position_pct: limited(z.number().gt(0).max(10)).describe(
      "One instrument's position as a share of equity: 0.25 is 25 %.",
    ),
    max_daily_loss_pct: limited(share).describe('Loss of a day as a share of equity: 0.02 is 2 %.'),
    max_drawdown_pct: limited(share).describe('Loss from the highest equity: 0.15 is 15 %.'),
    max_instruments: limited(z.int().min(1)).describe('Instruments held at once.'),
    price_collar_period: limited(
      z.strictObject({
        seconds: windowSeconds,
        bps: z.number().gt(0).max(10_000).describe('Basis points.'),
      }),
    ).describe(
      'How far the price of an order may be from the limits and fills of the last seconds, by ' +
        'instrument and side.',
    ),
    messages_kept_for_cancels: z
      .int()
      .min(1)
      .optional()
      .describe('Of max_messages_per_second, those that new orders must leave to cancels.'),
    repeated_execution: limited(
      z.strictObject({
        count: z.int().min(1).describe('Executed orders of one instrument and side.'),
        seconds: windowSeconds,
      }),
    ).describe(
      'After so many executions within so many seconds every new order is denied, until a person ' +
        're-enables the bot; a backtest ends so.',
    ),
    permitted: z
      .strictObject({
        instruments: z
          .array(symbol)
          .max(500)
          .optional()
          .describe('Symbols; orders for others are denied.'),
        venues: z
          .array(text(100))
          .max(100)
          .optional()
          .describe('Exchanges, as the server calls them; at others it is not started.'),
      })
      .optional()
      .describe('Where the bot may trade; anywhere when absent.'),
  } satisfies Record<keyof RiskLimits | keyof OptionalLimits, z.ZodType>)
  .describe('Checked before every order. Each limit is a value, or {unlimited: why}.');

const lowerCaseName = z
  .string()
  .max(64)
  .regex(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/, 'must be lower-case words joined by underscores');

const featureColumn = z.enum(FEATURE_COLUMNS);

const featureSchema = z
  .strictObject({
    column: featureColumn.optional().describe('A column of the bar, as it is.'),
    indicator: z
      .enum(INDICATOR_NAMES)
      .optional()
      .describe(
        'An indicator over the bars so far. return: the change since `period` bars before.',
      ),
    params: map(text(100), z.number().max(10_000), 10)
      .optional()
      .describe('Of the indicator, all that it has.'),
    of: featureColumn
      .optional()
      .describe('What an indicator of one series is taken of; close by default.'),
    line: text(100).optional().describe('Of an indicator with several; its main one by default.'),
    over: featureColumn.optional().describe('What all of it is divided by.'),
  })
  .meta({ oneOf: [{ required: ['column'] }, { required: ['indicator'] }] });

export const MOST_MODELS = 50;

const modelOutputSchema = z.strictObject({
  name: lowerCaseName.describe('What strategies call it: `instrument.signal(name)`.'),
  from: text(200).optional().describe('The output of the model; needed where that has several.'),
  element: z.int().min(0).max(65_535).default(0).describe('Which number of it, from 0.'),
});

export const mlModelSchema = z
  .strictObject({
    name: lowerCaseName,
    path: path
      .regex(/\.onnx$/, 'must be an .onnx file')
      .describe('ONNX file, relative to this file.'),
    digest: z
      .string()
      .regex(/^sha256:[0-9a-f]{64}$/, 'must be sha256: and 64 hexadecimal digits')
      .describe('SHA-256 of that file, which is used as it is or not at all.'),
    inputs: z
      .array(featureSchema)
      .min(1)
      .max(1000)
      .describe('The numbers of the one row that the model is given of a bar, in this order.'),
    outputs: z.array(modelOutputSchema).min(1).max(100),
  })
  .describe('Run on each bar of each symbol, once all of its inputs are known.');

const agentSchema = z.strictObject({
  role: text(100).describe('What the chat calls the agent: no two have the same.'),
  instructions: text(8000, CONTROL_CHARACTER_IN_PARAGRAPHS)
    .optional()
    .describe('What the language model is told of its role.'),
  tools: z
    .array(z.enum(AGENT_TOOLS))
    .max(100)
    .optional()
    .describe('Those that it may use, such as read_results; all, when absent.'),
  budget: z
    .strictObject({
      turns: z.int().min(1).max(1000).optional().describe('Requests to the model per answer.'),
      seconds: z.number().gt(0).max(3600).optional(),
      tokens: z.int().min(1).optional(),
    })
    .optional()
    .describe('What an answer may take, below what the server is set to.'),
  schedule: z
    .strictObject({
      every: z
        .string()
        .refine(isEvery, EVERY_EXPECTED)
        .meta({ pattern: EVERY.source })
        .describe(
          'A length of time from 5m to 31d such as 6h, or day at 06:30, which is a time in UTC.',
        ),
      prompt: text(8000, CONTROL_CHARACTER_IN_PARAGRAPHS).describe('What it is asked then.'),
    })
    .optional()
    .describe('When it is asked by itself, once somebody has turned that on at the server.'),
});

const subject = text(100).optional();

const attributionSchema = z
  .strictObject({
    trader: subject.describe('Who answers for the orders.'),
    desk: subject.describe('To which that trader belongs.'),
    client: subject.describe('For whom the bot trades; a name of the firm where that is itself.'),
  })
  .describe(
    'For whom the orders are: the thresholds of these hold for the bot. While there are thresholds of a level, a bot that names nobody there does not start.',
  );

const deploymentSchema = z.strictObject({
  target: z.enum(['backtest', 'paper', 'k8s']),
  brokerage: text(100).optional(),
  namespace: z
    .string()
    .max(63)
    .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'must be lower-case words joined by hyphens')
    .optional(),
  on_stop: z.literal('cancel').optional().describe('cancel: cancel every working order.'),
  heartbeat_seconds: z.number().gt(0).max(3600).optional(),
});

/** A bot as its author writes it, in YAML or JSON. Unknown fields are refused. */
export const botSpecSchema = z.strictObject({
  $schema: text(1000).optional().describe('Where an editor finds the schema of this file.'),
  apiVersion: z.literal('bots/v1'),
  kind: z.literal('Bot'),
  metadata: metadataSchema,
  spec: z.strictObject({
    kind: z.enum(['trading', 'research']),
    universe: universeSchema,
    data: dataSchema,
    strategy: strategySchema,
    engine: engineSchema.prefault({}).describe('How orders are filled and what they cost.'),
    metrics: z
      .array(gateSchema)
      .max(100)
      .default([])
      .describe('Gates: a result outside of them fails the run.'),
    risk: riskSchema.optional(),
    attribution: attributionSchema.optional(),
    ml_models: z.array(mlModelSchema).max(MOST_MODELS).optional(),
    agents: z
      .array(agentSchema)
      .max(50)
      .refine(
        (agents) => new Set(agents.map(({ role }) => role)).size === agents.length,
        'must have each role once',
      )
      .optional(),
    deployment: deploymentSchema.optional(),
  }),
});

/** A valid spec with its defaults filled in. */
export type BotSpec = z.output<typeof botSpecSchema>;

/** The engine's settings that a valid spec asks for; amounts become float64 here and nowhere else. */
export function engineConfig(spec: BotSpec): EngineConfig {
  const { engine, risk } = spec.spec;
  const optional = optionalLimits(risk);
  return {
    cash: Number(engine.cash),
    fill: fillModel(engine.fill),
    units: engine.units,
    fees: feeModel(engine.fees),
    slippage: engine.slippage,
    account: engine.account === 'cash' ? { model: 'cash' } : engine.account,
    risk: riskLimits(risk),
    ...(optional && { optionalLimits: optional }),
    seed: engine.seed,
  };
}

function fillModel(fill: BotSpec['spec']['engine']['fill']): FillModel {
  if (typeof fill === 'object') return fill;
  return fill === 'volume_share' ? { model: fill, limit: DEFAULT_VOLUME_LIMIT } : { model: fill };
}

function feeModel(fees: BotSpec['spec']['engine']['fees']): FeeModel {
  if (fees.model === 'none') return fees;
  return { model: fees.model, rate: Number(fees.rate), min: Number(fees.min) };
}

function riskLimits(risk: BotSpec['spec']['risk'] = {}): RiskLimits {
  const limits: { -readonly [K in keyof RiskLimits]: number } = { ...NO_RISK_LIMITS };
  for (const name of Object.keys(limits) as (keyof RiskLimits)[]) {
    const limit = risk[name];
    if (limit !== undefined && typeof limit !== 'object') limits[name] = Number(limit);
  }
  return limits;
}

function optionalLimits(risk: BotSpec['spec']['risk'] = {}): OptionalLimits | undefined {
  const { price_collar_period, messages_kept_for_cancels, repeated_execution, permitted } = risk;
  const limits: OptionalLimits = {
    ...(price_collar_period && 'bps' in price_collar_period && { price_collar_period }),
    ...(messages_kept_for_cancels !== undefined && { messages_kept_for_cancels }),
    ...(repeated_execution && 'count' in repeated_execution && { repeated_execution }),
    ...(permitted?.instruments && { permitted: permitted.instruments }),
  };
  return Object.keys(limits).length === 0 ? undefined : limits;
}
