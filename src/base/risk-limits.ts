interface Limit {
  /** Noun phrase for people. */
  readonly title: string;
  readonly unit: string;
  /** Text of the reference and the JSON Schema of the bot file. */
  readonly help: string;
}

/**
 * Limits of a bot with a single number. A bot that trades must set each of them, to a value or to
 * `{unlimited: reason}`. The order is the order of the bot file.
 */
const REQUIRED_LIMITS = {
  max_order_value: {
    title: 'value of an order',
    unit: 'account currency',
    help: 'Maximum value of one order, account currency.',
  },
  max_order_qty: {
    title: 'quantity of an order',
    unit: 'units',
    help: 'Maximum quantity of one order, units.',
  },
  price_collar_bps: {
    title: 'price collar',
    unit: 'basis points from the last close',
    help: 'Maximum distance of the price of an order from the last close, basis points.',
  },
  max_messages_per_second: {
    title: 'messages per second',
    unit: 'orders and cancels',
    help: 'Maximum number of orders and cancels per second of bar time.',
  },
  max_position_pct: {
    title: 'position in one instrument',
    unit: 'share of equity',
    help: 'Maximum position in one instrument, as a share of equity: 0.25 is 25 %.',
  },
  max_daily_loss_pct: {
    title: 'loss of a day',
    unit: 'share of equity',
    help: 'Maximum loss of one day, as a share of equity: 0.02 is 2 %. A day is a UTC day, or a session of `universe.calendar`. Beyond it, only orders that reduce a position pass.',
  },
  max_drawdown_pct: {
    title: 'drawdown',
    unit: 'share of the highest equity',
    help: 'Maximum loss from the highest equity, as a share: 0.15 is 15 %. Beyond it, only orders that reduce a position pass.',
  },
  max_instruments: {
    title: 'instruments held at once',
    unit: 'number',
    help: 'Maximum number of instruments held or being bought at once.',
  },
} as const satisfies Readonly<Record<string, Limit>>;

/** Further limits of a bot, each off by default. */
const OPTIONAL_LIMITS = {
  price_collar_period: {
    title: 'price collar over a period',
    unit: 'basis points within seconds',
    help: 'Maximum distance of the price of an order from the limit prices and fills of the last `seconds`, for the same instrument and side.',
  },
  messages_kept_for_cancels: {
    title: 'messages kept for cancels',
    unit: 'messages per second',
    help: 'Part of max_messages_per_second that only cancels may use.',
  },
  repeated_execution: {
    title: 'repeated execution',
    unit: 'orders within seconds',
    help: 'After `count` executed orders within `seconds`, every new order is denied until a person re-enables the bot; in a backtest, until its end.',
  },
  permitted: {
    title: 'permitted instruments and venues',
    unit: 'names',
    help: 'Instruments and venues that the bot may trade. Default: all.',
  },
} as const satisfies Readonly<Record<string, Limit>>;

/** All fields of `risk` in a bot file. */
export const RISK_LIMITS = { ...REQUIRED_LIMITS, ...OPTIONAL_LIMITS };

export type RequiredLimit = keyof typeof REQUIRED_LIMITS;
export type LimitName = keyof typeof RISK_LIMITS;

export const REQUIRED_LIMIT_NAMES = Object.keys(REQUIRED_LIMITS) as readonly RequiredLimit[];

/** Limits and thresholds that three people may override for one order (RTS 6, article 15(6)). */
export const OVERRIDABLE_LIMITS = [
  'max_order_value',
  'max_order_qty',
  'price_collar_bps',
  'price_collar_period',
  'max_position_pct',
  'max_instruments',
  'threshold_order_value',
  'threshold_order_qty',
  'threshold_gross_exposure',
] as const;
