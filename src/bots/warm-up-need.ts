import { declaredIndicators } from '../engine/declared-indicators.ts';
import type { DeclaredIndicator } from '../engine/series/series-graph.ts';
import { barsOf } from '../engine/series/warm-up.ts';
import { formatCountOf } from '../base/format.ts';
import type { Bot } from './load-bot.ts';
import { engineConfig } from './spec.ts';

/** History that the declared indicators of a bot need before its run, in bars. */
export interface WarmUpNeed {
  /** Bars with which all are ready one bar before the first bar of the run. */
  readonly needed: number;
  readonly indicators: readonly IndicatorNeed[];
}

interface IndicatorNeed {
  /** For example `ema(close,20)`. */
  readonly indicator: string;
  /** Bars until it is ready. */
  readonly ready: number;
  /** Bars after which the influence of older ones is below 1e-9; null if no such number is known. */
  readonly settled: number | null;
}

export function hasIndicators({ strategy, declare }: Bot): boolean {
  return strategy.indicators !== undefined || declare !== undefined;
}

/**
 * Returns undefined for a strategy without declared indicators.
 *
 * @throws ServiceError `strategy_failed` or `strategy_timeout` if it cannot declare them.
 */
export function warmUpNeed(bot: Bot, barMs: number): WarmUpNeed | undefined {
  if (!hasIndicators(bot)) return undefined;
  const { strategy, declare, params, spec } = bot;
  const { symbols } = spec.spec.universe;
  const { timeframe, calendar } = engineConfig(spec);
  const kind = { timeframe, calendar };
  const declared =
    declare?.(params, symbols, kind) ?? declaredIndicators(strategy, params, symbols, kind);
  const indicators = declared.map((indicator) => needOf(indicator, barMs));
  return { needed: Math.max(0, ...indicators.map(({ ready }) => ready)), indicators };
}

function needOf(
  { label, warmUp: { ready, settled } }: DeclaredIndicator,
  barMs: number,
): IndicatorNeed {
  const bars = barsOf(settled, barMs);
  return {
    indicator: label,
    ready: barsOf(ready, barMs),
    settled: Number.isFinite(bars) ? bars : null,
  };
}

/** `warm_up` of a file in `validate --json`. */
export interface WarmUpReport extends WarmUpNeed {
  /** Bars of the data before the window, by symbol. */
  readonly given: Readonly<Record<string, number>>;
}

/** Returns sentences about the bars before a window, and about indicators that depend on more of them. */
export function describeWarmUp(
  { needed, indicators }: WarmUpNeed,
  given: WarmUpReport['given'],
): string[] {
  const least = Math.min(...Object.values(given));
  const counts = Object.entries(given).map(([symbol, bars]) => `${symbol} ${bars}`);
  const bars = formatCountOf(needed, 'bar');
  return [
    `The indicators need ${bars} before the window, and the data have: ${counts.join(', ')}.`,
    ...indicators.flatMap(({ indicator, settled }) => {
      if (settled === null) return [`${indicator} depends on all bars since the first.`];
      if (settled <= Math.max(least, needed)) return [];
      return [
        `${indicator} depends on the first bars: their influence is below 1e-9 after ${formatCountOf(settled, 'bar')}.`,
      ];
    }),
  ];
}
