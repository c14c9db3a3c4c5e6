import { z } from '@hono/zod-openapi';
import {
  administrator,
  botPath,
  defineRoute,
  jsonResponse,
  page,
  pageQuery,
  time,
} from './http.ts';
import { optionalTime } from './bot-state.ts';
import { EXAMPLE_SESSION_ID } from './replay.ts';

const reading = { tags: ['Bots'], security: administrator('read') };

const run_id = z.string().min(1).max(128).optional().openapi({
  description: '`task_id` of a paper or production session; the newest one by default.',
  example: EXAMPLE_SESSION_ID,
});

const column = z.array(z.number());

const Indicator = z
  .strictObject({
    name: z.string().describe('Name that the strategy gave it; may be empty.'),
    label: z.string().openapi({ example: 'sma(close, 20)' }),
    lines: z.array(
      z.strictObject({
        name: z.string().describe('Empty for an indicator with a single line.'),
        pane: z.string().describe('`price`, `volume`, or the key of a pane of its own.'),
        style: z.enum(['line', 'dots', 'histogram']),
        is_filled: z.boolean().describe('Whether the area to the next line is filled.'),
      }),
    ),
  })
  .openapi('SessionIndicator');

const SessionChart = z
  .strictObject({
    run_id: z.string(),
    symbol: z.string(),
    symbols: z.array(z.string()).describe('All instruments of the session.'),
    timeframe: z.string().nullable(),
    candles: z
      .strictObject({
        time: column,
        open: column,
        high: column,
        low: column,
        close: column,
        volume: column,
      })
      .describe('Columns of equal length; `time` is the opening in seconds since the Unix epoch.'),
    indicators: z.array(Indicator),
    lines: z
      .array(z.array(z.number().nullable()))
      .describe('Values of each line of `indicators`, in their order, one for each candle.'),
    without_indicators: z
      .literal('custom_code')
      .nullable()
      .describe('Why `indicators` is empty although the strategy may declare some.'),
    equity: z
      .strictObject({ time: column, equity: column, drawdown: column })
      .describe('Columns of equal length; `drawdown` is a share of the highest equity, at most 0.'),
  })
  .openapi('SessionChart');

export type SessionChart = z.infer<typeof SessionChart>;

export const getSessionChart = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/state/chart',
  operationId: 'getSessionChart',
  summary: 'Read the bars, the indicators and the equity of a trading session',
  description:
    'Returns the newest steps of a session, about 5,000, from the log of the bot. Indicators that a built-in strategy declares are computed from the recorded bars. The server does not run code of a custom strategy for this request.',
  request: {
    params: botPath,
    query: z.strictObject({
      run_id,
      symbol: z.string().min(1).max(64).optional().describe('The first instrument by default.'),
      after: optionalTime.describe('Only candles and values after this time.'),
    }),
  },
  responses: { 200: jsonResponse('The chart.', SessionChart) },
  errors: ['not_found', 'archived', 'invalid_spec'],
});

const SessionTrade = z
  .strictObject({
    id: z.int().describe('Starts at 1 in each session, in order of entry.'),
    symbol: z.string(),
    side: z.enum(['long', 'short']),
    status: z.enum(['closed', 'open']),
    entry_time: time,
    exit_time: time.describe('For an open trade, the time of its valuation.'),
    quantity: z.number().describe('Units entered.'),
    entry_price: z.number(),
    exit_price: z.number().describe('For an open trade, the price of its valuation.'),
    pnl: z.number().describe('Account currency, after fees.'),
    return: z.number().describe('`pnl` as a share of the entry value.'),
    fees: z.number(),
  })
  .openapi('SessionTrade', {
    description: 'A round trip in one instrument, from flat to flat.',
  });

export type SessionTrade = z.infer<typeof SessionTrade>;

const ORDERS = ['entry_time', 'exit_time', 'symbol', 'quantity', 'pnl', 'return'] as const;

export const listSessionTrades = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/state/trades',
  operationId: 'listSessionTrades',
  summary: 'List the trades of a trading session',
  description: 'Computed from the fills in the log of the bot, open trades included.',
  request: {
    params: botPath,
    query: z.strictObject({
      ...pageQuery,
      run_id,
      symbol: z.string().min(1).max(64).optional(),
      side: z.enum(['long', 'short']).optional(),
      outcome: z.enum(['gain', 'loss', 'open']).optional(),
      sort: z.enum(ORDERS).default('entry_time'),
      order: z.enum(['asc', 'desc']).default('desc'),
      format: z
        .enum(['json', 'csv'])
        .default('json')
        .describe('`csv` returns all trades that match, without pages.'),
    }),
  },
  responses: {
    200: {
      description: 'A page of trades.',
      content: {
        'application/json': {
          schema: page(SessionTrade)
            .extend({
              run_id: z.string(),
              count: z.int().describe('Number of all trades that match.'),
              pnl: z.number().describe('Sum of their `pnl`.'),
            })
            .openapi('SessionTrades'),
        },
        'text/csv': { schema: z.string() },
      },
    },
  },
  errors: ['not_found', 'archived'],
});
