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
import { REQUIRED_LIMIT_NAMES, RISK_LIMITS, type LimitName } from '../base/risk-limits.ts';
import { SYMBOL, SYMBOL_RULE } from '../market/symbol.ts';
import { TIMEFRAME_NAMES } from '../market/timeframe.ts';
import { parseWindow } from '../market/time.ts';
import { FEATURE_COLUMNS, INDICATOR_NAMES } from './models/features.ts';
import { AGENT_TOOLS, EVERY, EVERY_EXPECTED, isEvery } from './agents.ts';

/** Replacements for problems that zod would describe poorly. */
export const SPECIAL_PROBLEMS = z.registry<{
  readonly of: (value: unknown) => Pick<Problem, 'code' | 'message'> | undefined;
}>();

/** Money is text, because a YAML number becomes a float before its digits can be checked. */
const decimal = (pattern: RegExp, expected: string) =>
  z
    .string()
    .max(40)
    .regex(pattern, expected)
    .register(SPECIAL_PROBLEMS, {
      of: (value) =>
        typeof value === 'number'
          ? { code: 'unquoted_money', message: 'must be in quotes, to keep its exact digits' }
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

/** Text without control characters, which could affect terminals and files. */
const text = (most: number, forbidden = CONTROL_CHARACTER) =>
  z
    .string()
    .min(1)
    .max(most)
    .refine((value) => !forbidden.test(value), 'must not contain control characters');
const path = text(1000);

const map = <V extends z.ZodType>(name: z.ZodString, value: V, most: number) =>
  z
    .record(name, value)
    .refine((entries) => Object.keys(entries).length <= most, `must have at most ${most} entries`)
    .meta({ maxProperties: most });

/** Above 0, at most 1. */
const share = z.number().gt(0).max(1);

const time = z
  .string()
  .refine(
    isTime,
    'must be an existing date such as 2000-01-03, or a time such as 2020-04-17T14:30:00Z',
  )
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
  name: text(120).describe('Display name.'),
  slug: z
    .string()
    .max(64)
    .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'must be lower-case words joined by hyphens')
    .describe('Name in files and commands: lower-case words joined by hyphens.'),
  labels: map(text(64), text(256), 100)
    .optional()
    .describe('Your own names and values, for example desk: index.'),
  owner: text(120).optional().describe('Person or team responsible for the bot.'),
  description: text(4000, CONTROL_CHARACTER_IN_PARAGRAPHS).optional(),
});

const universeSchema = z.strictObject({
  symbols: z
    .array(symbol)
    .min(1)
    .max(500)
    .describe('Instruments, in the order in which the strategy gets them.'),
  currency: z
    .string()
    .regex(/^[A-Z][A-Z0-9]{1,9}$/, 'must be a currency code such as USD')
    .describe('Currency of the account and of all prices.'),
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
  .describe('Names of columns in the header of the file, if they are not recognized.');

export const dataSchema = z
  .strictObject({
    source: path
      .optional()
      .describe('For one symbol: CSV or Parquet file relative to this file, or catalog://NAME.'),
    sources: map(symbol, path, 500)
      .optional()
      .describe('By symbol: CSV or Parquet file relative to this file, or catalog://NAME.'),
    timeframe: z.enum(TIMEFRAME_NAMES).describe('Length of a bar. Finer data is resampled to it.'),
    from: time.optional().describe('First UTC day or time to use. Default: the start of the data.'),
    to: time
      .optional()
      .describe('Last UTC day (inclusive) or time to use. Default: the end of the data.'),
    columns: columnsSchema.optional(),
    repair: z
      .literal('drop')
      .optional()
      .describe('drop: skip invalid rows. By default, data with invalid rows is rejected.'),
  })
  .meta({ oneOf: [{ required: ['source'] }, { required: ['sources'] }] });

const strategySchema = z
  .strictObject({
    name: text(100).optional().describe('Name of a built-in strategy.'),
    module: path
      .regex(/\.(ts|js|mjs)$/, 'must be a .ts, .js or .mjs file')
      .optional()
      .describe('File of your own strategy, relative to this file.'),
    params: map(text(100), z.union([z.number(), z.string().max(1000), z.boolean()]), 100)
      .default({})
      .describe('Parameters of the strategy. Omitted ones have their defaults.'),
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
        .describe("Largest share of a bar's volume that fills may take."),
    }),
  ]),
]);

const minimumFee = amount.default('0').describe('Minimum fee of one fill, account currency.');

const feesSchema = z.discriminatedUnion('model', [
  z.strictObject({ model: model('none') }),
  z.strictObject({
    model: model('percent'),
    rate: shareAmount.describe('Share of the traded value: "0.001" is 0.1 %.'),
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
    bps: z
      .number()
      .min(0)
      .lt(10_000)
      .describe('Basis points by which each fill is worse than its price.'),
  }),
  z.strictObject({
    model: model('volume_share'),
    impact: z
      .number()
      .min(0)
      .lt(1)
      .describe(
        'Price impact: each fill slips by impact × (quantity / bar volume)², as a share of the price.',
      ),
  }),
]);

const accountSchema = z.union([
  model('cash'),
  z.discriminatedUnion('model', [
    z.strictObject({ model: model('cash') }),
    z.strictObject({
      model: model('margin'),
      initial: share.describe(
        'Equity required to open positions, as a share of their value: 0.5 allows 2:1.',
      ),
      maintenance: share.describe(
        'All positions are closed when equity falls below this share of their value.',
      ),
    }),
  ]),
]);

const engineSchema = z.strictObject({
  cash: positiveAmount.default('100000').describe('Initial cash, account currency.'),
  fill: fillSchema
    .default('next_open')
    .describe(
      "next_open: at the next bar's open. ohlc_path: along an assumed path through the bar's prices. " +
        "volume_share: at the next open, up to a share of the bar's volume.",
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
      ? { code: 'unknown_metric', message: `unknown metric ${JSON.stringify(value)}` }
      : undefined,
});

const gateSchema = z
  .strictObject({
    name: metricSchema.describe('Name of a statistic of the result.'),
    min: z.number().optional().describe('Smallest value that passes.'),
    max: z.number().optional().describe('Largest value that passes.'),
  })
  .meta({ anyOf: [{ required: ['min'] }, { required: ['max'] }] });

const limited = <T extends z.ZodType>(name: LimitName, value: T) =>
  z
    .union([
      value,
      z.strictObject({ unlimited: text(400).describe('Reason why there is no limit.') }),
    ])
    .optional()
    .describe(RISK_LIMITS[name].help);

const windowSeconds = z.number().gt(0).max(31_536_000).describe('Seconds of bar time.');
const basisPoints = z.number().gt(0).max(10_000);

const riskSchema = z
  .strictObject({
    max_order_value: limited('max_order_value', positiveAmount),
    max_order_qty: limited('max_order_qty', positiveAmount),
    price_collar_bps: limited('price_collar_bps', basisPoints),
    max_messages_per_second: limited('max_messages_per_second', z.number().gt(0)),
    max_position_pct: limited('max_position_pct', z.number().gt(0).max(10)),
    max_daily_loss_pct: limited('max_daily_loss_pct', share),
    max_drawdown_pct: limited('max_drawdown_pct', share),
    max_instruments: limited('max_instruments', z.int().min(1)),
    price_collar_period: limited(
      'price_collar_period',
      z.strictObject({ seconds: windowSeconds, bps: basisPoints.describe('Basis points.') }),
    ),
    messages_kept_for_cancels: z
      .int()
      .min(1)
      .optional()
      .describe(RISK_LIMITS.messages_kept_for_cancels.help),
    repeated_execution: limited(
      'repeated_execution',
      z.strictObject({
        count: z.int().min(1).describe('Executed orders of one instrument and side.'),
        seconds: windowSeconds,
      }),
    ),
    permitted: z
      .strictObject({
        instruments: z
          .array(symbol)
          .max(500)
          .optional()
          .describe('Symbols. Orders for others are denied.'),
        venues: z
          .array(text(100))
          .max(100)
          .optional()
          .describe('Exchanges, by their names at the server. The bot cannot start at others.'),
      })
      .optional()
      .describe(RISK_LIMITS.permitted.help),
  } satisfies Record<LimitName, z.ZodType>)
  .describe('Limits checked before every order. Each is a value, or {unlimited: reason}.');

const lowerCaseName = z
  .string()
  .max(64)
  .regex(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/, 'must be lower-case words joined by underscores');

const featureColumn = z.enum(FEATURE_COLUMNS);

const featureSchema = z
  .strictObject({
    column: featureColumn.optional().describe('Column of the bar, used unchanged.'),
    indicator: z
      .enum(INDICATOR_NAMES)
      .optional()
      .describe('Indicator over the bars up to this one. return: change since `period` bars ago.'),
    params: map(text(100), z.number().max(10_000), 10)
      .optional()
      .describe('All parameters of the indicator.'),
    of: featureColumn
      .optional()
      .describe('Source column of an indicator over a single series. Default: close.'),
    line: text(100)
      .optional()
      .describe('Output of an indicator with several. Default: its main one.'),
    over: featureColumn.optional().describe('Column by which the value is divided.'),
  })
  .meta({ oneOf: [{ required: ['column'] }, { required: ['indicator'] }] });

export const MOST_MODELS = 50;

const modelOutputSchema = z.strictObject({
  name: lowerCaseName.describe('Name in strategies: `instrument.signal(name)`.'),
  from: text(200).optional().describe('Output of the model. Required if it has several.'),
  element: z
    .int()
    .min(0)
    .max(65_535)
    .default(0)
    .describe('Index of the number in the output, from 0.'),
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
      .describe('SHA-256 of the file; a file with another digest is rejected.'),
    inputs: z
      .array(featureSchema)
      .min(1)
      .max(1000)
      .describe('Numbers of the input row of each bar, in this order.'),
    outputs: z.array(modelOutputSchema).min(1).max(100),
  })
  .describe(
    'ONNX model that runs on each bar of each symbol. Until all inputs are numbers, its outputs are NaN.',
  );

const agentSchema = z.strictObject({
  role: text(100).describe('Name of the agent in chats, unique in the bot.'),
  instructions: text(8000, CONTROL_CHARACTER_IN_PARAGRAPHS)
    .optional()
    .describe('Instructions for the language model.'),
  tools: z
    .array(z.enum(AGENT_TOOLS))
    .max(100)
    .optional()
    .describe('Tools that the agent may use, such as read_results. Default: all.'),
  budget: z
    .strictObject({
      turns: z
        .int()
        .min(1)
        .max(1000)
        .optional()
        .describe('Maximum requests to the language model per answer.'),
      seconds: z.number().gt(0).max(3600).optional(),
      tokens: z.int().min(1).optional(),
    })
    .optional()
    .describe('Limits of one answer, within those set at the server.'),
  schedule: z
    .strictObject({
      every: z
        .string()
        .refine(isEvery, EVERY_EXPECTED)
        .meta({ pattern: EVERY.source })
        .describe(
          'Interval from 5m to 31d such as 6h, or a daily time in UTC such as day at 06:30.',
        ),
      prompt: text(8000, CONTROL_CHARACTER_IN_PARAGRAPHS).describe('Question to the agent.'),
    })
    .optional()
    .describe('Asks the agent at these times, once the schedule is enabled at the server.'),
});

const subject = text(100).optional();

const attributionSchema = z
  .strictObject({
    trader: subject.describe('Person responsible for the orders.'),
    desk: subject.describe('Desk of the trader.'),
    client: subject.describe(
      'Client for whom the bot trades; a name of the firm if it trades for itself.',
    ),
  })
  .describe(
    'Trader, desk and client whose thresholds apply to the bot. While a level has thresholds, a bot that names nobody at that level cannot start.',
  );

const deploymentSchema = z.strictObject({
  target: z.enum(['backtest', 'paper', 'k8s']),
  brokerage: text(100).optional(),
  namespace: z
    .string()
    .max(63)
    .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'must be lower-case words joined by hyphens')
    .optional(),
  on_stop: z.literal('cancel').optional().describe('cancel: cancel all working orders.'),
  heartbeat_seconds: z.number().gt(0).max(3600).optional(),
});

/** Schema of a bot file in YAML or JSON. Unknown fields are rejected. */
export const botSpecSchema = z.strictObject({
  $schema: text(1000).optional().describe('Address of the JSON Schema of this file, for editors.'),
  apiVersion: z.literal('bots/v1'),
  kind: z.literal('Bot'),
  metadata: metadataSchema,
  spec: z.strictObject({
    kind: z.enum(['trading', 'research']),
    universe: universeSchema,
    data: dataSchema,
    strategy: strategySchema,
    engine: engineSchema.prefault({}).describe('Rules and costs of fills.'),
    metrics: z
      .array(gateSchema)
      .max(100)
      .default([])
      .describe('Gates: a result outside their bounds fails the run.'),
    risk: riskSchema.optional(),
    attribution: attributionSchema.optional(),
    ml_models: z.array(mlModelSchema).max(MOST_MODELS).optional(),
    agents: z
      .array(agentSchema)
      .max(50)
      .refine(
        (agents) => new Set(agents.map(({ role }) => role)).size === agents.length,
        'must not have two agents with the same role',
      )
      .optional(),
    deployment: deploymentSchema.optional(),
  }),
});

/** A valid spec with its defaults filled in. */
export type BotSpec = z.output<typeof botSpecSchema>;

/** Engine settings of a valid spec. Decimal amounts become numbers only here. */
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
  for (const name of REQUIRED_LIMIT_NAMES) {
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
