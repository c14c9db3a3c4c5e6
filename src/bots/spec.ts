import { z } from 'zod';
import { METRIC_NAMES } from '../backtest/gates.ts';
import { closest } from '../base/closest.ts';
import {
  NO_RISK_LIMITS,
  type EngineConfig,
  type FeeModel,
  type FillModel,
  type OptionalLimits,
  type RiskLimits,
} from '../engine/config.ts';
import { REQUIRED_LIMIT_NAMES } from '../base/risk-limits.ts';
import { TIMEFRAME_NAMES } from '../market/timeframe.ts';
import { CALENDAR_NAMES } from '../market/trading-calendar.ts';
import {
  CONTROL_CHARACTER_IN_PARAGRAPHS,
  SPECIAL_PROBLEMS,
  amount,
  map,
  path,
  positiveAmount,
  share,
  shareAmount,
  symbol,
  text,
  time,
} from './field-types.ts';
import { mlModelSchema, MOST_MODELS } from './model-schema.ts';
import { riskSchema } from './risk-schema.ts';
import { AGENT_TOOLS, EVERY, EVERY_EXPECTED, isEvery } from './agent-schedule.ts';

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

export const universeSchema = z.strictObject({
  symbols: z
    .array(symbol)
    .min(1)
    .max(500)
    .describe('Instruments, in the order in which the strategy gets them.'),
  currency: z
    .string()
    .regex(/^[A-Z][A-Z0-9]{1,9}$/, 'must be a currency code such as USD')
    .describe('Currency of the account and of all prices.'),
  calendar: z
    .enum(CALENDAR_NAMES)
    .optional()
    .describe(
      'Trading days of the instruments: 24/7 (UTC days, the default), or the sessions of an exchange by its code (ISO 10383), such as XNYS.',
    ),
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
      .describe('For each symbol: CSV or Parquet file relative to this file, or catalog://NAME.'),
    timeframe: z
      .enum(TIMEFRAME_NAMES)
      .describe('Length of a bar. Shorter bars are resampled to it.'),
    from: time
      .optional()
      .describe(
        'First UTC day or time of the run. Declared indicators also see the bars before it. Default: the start of the data.',
      ),
    to: time
      .optional()
      .describe('Last UTC day (inclusive) or time to use. Default: the end of the data.'),
    holdout: z
      .string()
      .regex(/^[1-9]\d{0,3}(y|mo|w|d)$/, 'must be a number and a unit: 1y, 6mo, 2w or 5d')
      .optional()
      .describe(
        'Last part of the data that runs leave out, such as 1y; backtest --open-holdout includes it.',
      ),
    benchmark: path
      .optional()
      .describe(
        'Series to compare runs with: a symbol of the bot, a file relative to this file, or catalog://NAME. Default: buying and holding the instruments.',
      ),
    columns: columnsSchema.optional(),
    time_format: text(100)
      .regex(/%/, 'must be a format as for strptime, such as %m/%d/%Y')
      .optional()
      .describe(
        'Format of the times in the file, as for strptime, such as %m/%d/%Y. A date and a time in two columns are joined by a space. Default: ISO 8601, or numbers since 1970.',
      ),
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
  at_end: z
    .enum(['hold', 'close'])
    .default('hold')
    .describe(
      'What a backtest does with open positions after its last bar. hold: value them at the last close. ' +
        'close: close them at the last close, with fees and slippage.',
    ),
  seed: z
    .int()
    .min(0)
    .max(0xffff_ffff)
    .default(0)
    .describe("Seed of the strategy's random numbers."),
});

const metricSchema = z.enum(METRIC_NAMES).register(SPECIAL_PROBLEMS, {
  of(value) {
    if (typeof value !== 'string') return undefined;
    const names = closest(value, METRIC_NAMES) ? '' : `; use one of ${METRIC_NAMES.join(', ')}`;
    return { code: 'unknown_metric', message: `unknown metric ${JSON.stringify(value)}${names}` };
  },
});

const gateSchema = z
  .strictObject({
    name: metricSchema.describe('Name of a statistic of the result.'),
    min: z.number().optional().describe('Smallest value that passes.'),
    max: z.number().optional().describe('Largest value that passes.'),
  })
  .meta({ anyOf: [{ required: ['min'] }, { required: ['max'] }] });

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
    'Trader, desk and client whose thresholds apply to the bot. While a level has thresholds, a bot that names none at that level cannot start.',
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
  const { universe, data, engine, risk } = spec.spec;
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
    ...(engine.at_end === 'close' && { closesAtEnd: true }),
    timeframe: data.timeframe,
    ...(universe.calendar && { calendar: universe.calendar }),
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
