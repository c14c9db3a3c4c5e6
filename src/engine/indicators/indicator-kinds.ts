import type { IndicatorKind } from '../series/computation.ts';
import { ADX } from './adx.ts';
import { RATIO, DIFFERENCE, LOG, LAG } from './arithmetic.ts';
import { AROON } from './aroon.ts';
import { ATR } from './atr.ts';
import { BOLLINGER } from './bollinger.ts';
import { CCI } from './cci.ts';
import { CHAIKIN_MONEY_FLOW } from './chaikin-money-flow.ts';
import { CHAIKIN_OSCILLATOR } from './chaikin-oscillator.ts';
import { CORRELATION } from './correlation.ts';
import { DONCHIAN } from './donchian.ts';
import { EMA } from './ema.ts';
import { HEIKIN_ASHI } from './heikin-ashi.ts';
import { HURST } from './hurst.ts';
import { ICHIMOKU } from './ichimoku.ts';
import { KALMAN } from './kalman.ts';
import { KELTNER } from './keltner.ts';
import { LINEAR_REGRESSION } from './linear-regression.ts';
import { MACD } from './macd.ts';
import { MFI } from './mfi.ts';
import { OBV } from './obv.ts';
import { PARABOLIC_SAR } from './parabolic-sar.ts';
import { PERCENTILE_RANK } from './percentile-rank.ts';
import { PIVOTS } from './pivots.ts';
import { RATE_OF_CHANGE } from './rate-of-change.ts';
import { RSI } from './rsi.ts';
import { SMA } from './sma.ts';
import { STANDARD_DEVIATION } from './standard-deviation.ts';
import { STOCHASTIC } from './stochastic.ts';
import { SUPERTREND } from './supertrend.ts';
import { TRADING_DAYS } from './trading-days.ts';
import { TRIX } from './trix.ts';
import { VWAP } from './vwap.ts';
import { WILDER } from './wilder.ts';
import { WILLIAMS_R } from './williams-r.ts';
import { WMA } from './wma.ts';
import { Z_SCORE } from './z-score.ts';

/** All indicators that strategies can declare, by name. */
export const INDICATOR_KINDS: ReadonlyMap<string, AnyKind> = new Map(
  [
    ADX,
    RATIO,
    DIFFERENCE,
    LOG,
    LAG,
    AROON,
    ATR,
    BOLLINGER,
    CCI,
    CHAIKIN_MONEY_FLOW,
    CHAIKIN_OSCILLATOR,
    CORRELATION,
    DONCHIAN,
    EMA,
    HEIKIN_ASHI,
    HURST,
    ICHIMOKU,
    KALMAN,
    KELTNER,
    LINEAR_REGRESSION,
    MACD,
    MFI,
    OBV,
    PARABOLIC_SAR,
    PERCENTILE_RANK,
    PIVOTS,
    RATE_OF_CHANGE,
    RSI,
    SMA,
    STANDARD_DEVIATION,
    STOCHASTIC,
    SUPERTREND,
    TRADING_DAYS,
    TRIX,
    VWAP,
    WILDER,
    WILLIAMS_R,
    WMA,
    Z_SCORE,
  ].map((kind) => [kind.name, kind as unknown as AnyKind]),
);

type AnyKind = IndicatorKind<readonly unknown[], unknown, string>;
