import { z } from 'zod';
import { RISK_LIMITS, type LimitName } from '../base/risk-limits.ts';
import { positiveAmount, share, symbol, text } from './field-types.ts';

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

export const riskSchema = z
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
