/**
 * The public API for strategies: `import { defineStrategy, integer, Sma } from
 * 'service-local/strategy'`.
 *
 * ```ts
 * export default defineStrategy({
 *   name: 'above_average',
 *   description: 'Long while the close is above its average.',
 *   params: { period: integer({ default: 50, min: 1 }) },
 *   indicators: ({ params, instruments: [asset] }) => ({ mean: sma(asset.close, params.period) }),
 *   create: ({ instruments: [asset], indicators: { mean }, broker }) => ({
 *     onBar: () => void broker.target(asset, asset.close > mean.value ? 1 : 0),
 *   }),
 * });
 * ```
 *
 * A strategy cannot change the objects that a run gives it: the broker, instruments, orders, fills,
 * parameters and declared series are frozen or views. The classes of indicators may be patched. So
 * may the objects of the language (`Array.prototype`, `Math`), which the engine shares with
 * everything in the process: run strategies from others in the sandbox, a separate process.
 */
export { defineStrategy } from './strategy.ts';
export type {
  Broker,
  Fill,
  IndicatorContext,
  Strategy,
  StrategyContext,
  StrategyRun,
} from './strategy.ts';
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
export { Adx, adx } from './indicators/adx.ts';
export { difference, lag, log, ratio } from './indicators/arithmetic.ts';
export { Atr, atr } from './indicators/atr.ts';
export { Bollinger, bollinger } from './indicators/bollinger.ts';
export { Correlation, correlation } from './indicators/correlation.ts';
export { Donchian, donchian } from './indicators/donchian.ts';
export { Ema, ema } from './indicators/ema.ts';
export { Keltner, keltner } from './indicators/keltner.ts';
export { Macd, macd } from './indicators/macd.ts';
export { Obv, obv } from './indicators/obv.ts';
export { Rsi, rsi } from './indicators/rsi.ts';
export { Sma, sma } from './indicators/sma.ts';
export { StandardDeviation, standardDeviation } from './indicators/standard-deviation.ts';
export { Stochastic, stochastic } from './indicators/stochastic.ts';
export { Vwap, vwap } from './indicators/vwap.ts';
export { Wma, wma } from './indicators/wma.ts';
export { ZScore, zScore } from './indicators/z-score.ts';
export { Aroon, aroon } from './indicators/aroon.ts';
export { Cci, cci } from './indicators/cci.ts';
export { ChaikinMoneyFlow, chaikinMoneyFlow } from './indicators/chaikin-money-flow.ts';
export { ChaikinOscillator, chaikinOscillator } from './indicators/chaikin-oscillator.ts';
export { HeikinAshi, heikinAshi } from './indicators/heikin-ashi.ts';
export { Hurst, hurst } from './indicators/hurst.ts';
export { Ichimoku, ichimoku } from './indicators/ichimoku.ts';
export { Kalman, kalman } from './indicators/kalman.ts';
export { LinearRegression, linearRegression } from './indicators/linear-regression.ts';
export { Mfi, mfi } from './indicators/mfi.ts';
export { ParabolicSar, parabolicSar } from './indicators/parabolic-sar.ts';
export { PercentileRank, percentileRank } from './indicators/percentile-rank.ts';
export { Pivots, pivots } from './indicators/pivots.ts';
export { RateOfChange, rateOfChange } from './indicators/rate-of-change.ts';
export { Supertrend, supertrend } from './indicators/supertrend.ts';
export { Trix, trix } from './indicators/trix.ts';
export { WilliamsR, williamsR } from './indicators/williams-r.ts';
export { wilder } from './indicators/wilder.ts';
export {
  above,
  all,
  any,
  below,
  crossedAbove,
  crossedBelow,
  crossing,
  crossingAbove,
  crossingBelow,
  every,
} from './series/condition.ts';
export type { Condition } from './series/condition.ts';
export type { BarSeries, Lines, Series } from './series/declared-series.ts';
