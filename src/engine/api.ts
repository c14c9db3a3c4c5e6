/**
 * The public API for strategies: `import { defineStrategy, integer, Sma } from
 * 'service-local/strategy'`.
 *
 * A strategy cannot change the objects that a run gives it: the broker, instruments, orders, fills
 * and parameters are frozen or views. Indicators are the strategy's own objects, and their classes
 * may be patched. So may the objects of the language (`Array.prototype`, `Math`), which the engine
 * shares with everything in the process: run strategies from others in the sandbox, a separate
 * process.
 */
export { defineStrategy } from './strategy.ts';
export type { Broker, Fill, Strategy, StrategyContext, StrategyRun } from './strategy.ts';
export type { Instrument } from './instrument.ts';
export type {
  ExitPrice,
  Order,
  OrderReason,
  OrderRequest,
  OrderStatus,
  OrderType,
  TimeInForce,
} from './orders/order.ts';
export { choice, flag, integer, number } from './params.ts';
export type { Param, Params, ParamValues } from './params.ts';
export type { Indicator } from './indicators/indicator.ts';
export { Crossover } from './indicators/crossover.ts';
export { Adx } from './indicators/adx.ts';
export { Atr } from './indicators/atr.ts';
export { Bollinger } from './indicators/bollinger.ts';
export { Correlation } from './indicators/correlation.ts';
export { Donchian } from './indicators/donchian.ts';
export { Ema } from './indicators/ema.ts';
export { Keltner } from './indicators/keltner.ts';
export { Macd } from './indicators/macd.ts';
export { Obv } from './indicators/obv.ts';
export { Rsi } from './indicators/rsi.ts';
export { Sma } from './indicators/sma.ts';
export { StandardDeviation } from './indicators/standard-deviation.ts';
export { Stochastic } from './indicators/stochastic.ts';
export { Vwap } from './indicators/vwap.ts';
export { Wma } from './indicators/wma.ts';
export { ZScore } from './indicators/z-score.ts';
