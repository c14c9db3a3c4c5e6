import { formatBars } from '../backtest/data-findings.ts';
import { declaredIndicators } from '../engine/declared-indicators.ts';
import {
  earliestStart,
  historyNeeds,
  lengthOf,
  type History,
  type HistoryNeed,
} from '../engine/history-need.ts';
import type { BarKind } from '../engine/series/coarse-bars.ts';
import type { DeclaredIndicator } from '../engine/series/series-graph.ts';
import { barsOf } from '../engine/series/warm-up.ts';
import { formatTime } from '../market/bar-time.ts';
import type { Bot } from './load-bot.ts';
import { engineConfig } from './spec.ts';

/** `warm_up` of a file in `validate --json`: history that the declared indicators of a bot need. */
export interface WarmUpReport extends Omit<HistoryNeed, 'timeframe'> {
  /** The same for bars of longer timeframes, if indicators read any. */
  readonly longer?: readonly HistoryNeed[];
  /** Earliest `data.from` with enough bars before it; absent if there are enough, or never are. */
  readonly earliest_from?: string;
  readonly indicators: readonly IndicatorNeed[];
}

/** Counts bars of the timeframe of the indicator. */
interface IndicatorNeed {
  /** For example `ema(close,20)`. */
  readonly indicator: string;
  /** Absent if it is the timeframe of the bot. */
  readonly timeframe?: string;
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
export function indicatorsOf(bot: Bot): readonly DeclaredIndicator[] | undefined {
  if (!hasIndicators(bot)) return undefined;
  const { strategy, declare, params, spec } = bot;
  const { symbols } = spec.spec.universe;
  const kind = engineConfig(spec);
  const { timeframe, calendar } = kind;
  return (
    declare?.(params, symbols, { timeframe, calendar }) ??
    declaredIndicators(strategy, params, symbols, kind)
  );
}

/**
 * The bars before a window that the declared indicators of a bot need, by timeframe; that of the bot
 * is the first. Undefined for a strategy without declared indicators.
 *
 * @throws ServiceError as `indicatorsOf`.
 */
export function historyNeedsOf(
  bot: Bot,
  barMs: number,
  histories: Readonly<Record<string, History>>,
): HistoryNeed[] | undefined {
  const declared = indicatorsOf(bot);
  return declared && historyNeeds(declared, engineConfig(bot.spec), barMs, histories);
}

/**
 * Returns undefined for a strategy without declared indicators.
 *
 * @throws ServiceError as `indicatorsOf`.
 */
export function warmUpReport(
  bot: Bot,
  barMs: number,
  histories: Readonly<Record<string, History>>,
): WarmUpReport | undefined {
  const declared = indicatorsOf(bot);
  if (declared === undefined) return undefined;
  const kind = engineConfig(bot.spec);
  const needs = historyNeeds(declared, kind, barMs, histories);
  const [{ needed, given }, ...longer] = needs as [HistoryNeed, ...HistoryNeed[]];
  // Called even if no warm-up is short, because it rejects bars that span two longer ones.
  const start = earliestStart(needs, kind, Object.values(histories));
  return {
    needed,
    given,
    ...(longer.length > 0 && { longer }),
    ...(needs.some(isShort) && start !== undefined && { earliest_from: formatTime(start) }),
    indicators: declared.map((indicator) => needOf(indicator, barMs, kind)),
  };
}

function isShort({ needed, given }: HistoryNeed): boolean {
  return Object.values(given).some((count) => count < needed);
}

function needOf(
  { label, timeframe, warmUp }: DeclaredIndicator,
  barMs: number,
  { calendar }: BarKind,
): IndicatorNeed {
  const ms = lengthOf(timeframe, barMs);
  const settled = barsOf(warmUp.settled, ms, calendar);
  return {
    indicator: label,
    ...(timeframe !== '' && { timeframe }),
    ready: barsOf(warmUp.ready, ms, calendar),
    settled: Number.isFinite(settled) ? settled : null,
  };
}

/** Returns sentences about the bars before a window, and about indicators that depend on more of them. */
export function describeWarmUp(report: WarmUpReport): string[] {
  const { needed, given, longer = [], earliest_from, indicators } = report;
  const needs = [{ timeframe: '', needed, given }, ...longer];
  return [
    ...needs
      .filter((need) => need.needed > 0 || needs.length === 1)
      .map((need) => {
        const bars = formatBars(need.needed, need.timeframe);
        const counts = Object.entries(need.given).map(([symbol, count]) => `${symbol} ${count}`);
        return `The indicators need ${bars} before the window, and the data have: ${counts.join(', ')}.`;
      }),
    ...(earliest_from === undefined
      ? []
      : [`All indicators are ready at the first bar if data.from is ${earliest_from} or later.`]),
    ...indicators.flatMap(({ indicator, timeframe = '', settled }) => {
      if (settled === null) return [`${indicator} depends on all bars since the first.`];
      const need = needs.find((one) => one.timeframe === timeframe)!;
      const least = Math.min(...Object.values(need.given));
      if (settled <= Math.max(least, need.needed)) return [];
      return [
        `${indicator} depends on the first bars: their influence is below 1e-9 after ${formatBars(settled, timeframe)}.`,
      ];
    }),
  ];
}
