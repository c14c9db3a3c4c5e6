/** Derives the load that a bot must withstand from the peaks of its history. */
import type { RiskLimits } from '../../engine/config.ts';
import { DAY } from '../../market/bar-time.ts';
import { type History } from './history.ts';
import {
  CLASSES,
  WINDOWS,
  type MessageClass,
  type MessagePeak,
  type Mix,
  type VolumePeak,
  type WindowSeconds,
} from './peaks.ts';

export type Basis = 'observed_full' | 'observed_partial' | 'assumed';

export interface MessageTarget {
  readonly class: MessageClass;
  readonly window_s: WindowSeconds;
  /** Messages in a window of that length. */
  readonly count: number;
  /** Mix of the peak, which the target keeps; empty without a peak. */
  readonly mix: readonly Mix[];
}

export type VolumeTarget = Pick<VolumePeak, 'measure' | 'of' | 'window_s'> & {
  readonly amount: number;
};

/** Replaces the peaks of a bot without production history. */
export interface Assumption {
  readonly text: string;
  /** Outgoing messages per second, minute and day, by source; the largest applies. */
  readonly candidates: readonly {
    readonly source:
      | 'paper_peak'
      | 'order_limits'
      | 'message_limit'
      | 'venue_throttle'
      | 'declared';
    readonly counts: readonly [second: number, minute: number, day: number];
  }[];
  /** Minimum messages per window (an internal threshold). */
  readonly floor: number;
  /** Always null: a person has to take ownership of the assumption. */
  readonly owner: null;
}

export interface Plan {
  readonly basis: Basis;
  readonly multiplier: number;
  readonly messages: readonly MessageTarget[];
  readonly volume: readonly VolumeTarget[];
  readonly assumption: Assumption | null;
  /** Reasons why the verdict cannot be better than provisional. */
  readonly provisional: readonly string[];
}

export interface PlanOptions {
  /** Article 10 requires 2, which is the default and the minimum. */
  readonly multiplier?: number;
  readonly risk: RiskLimits;
  readonly instruments: number;
  /** Length of the bars on which the bot decides, ms. */
  readonly timeframeMs: number;
  /** Message limit of the venue, if known. */
  readonly throttle?: { readonly limit: number; readonly per_ms: number } | undefined;
  /** Outgoing messages per bar that the caller expects. */
  readonly declaredPeak?: number | undefined;
  /** Minimum messages per window without history; 1,000 by default. */
  readonly floor?: number;
}

const FLOOR = 1000;
const VENUES = 1;
/** One message to place an order and one to cancel it. */
const MESSAGES_OF_AN_ORDER = 2;

export function planStress(history: History, options: PlanOptions): Plan {
  const { multiplier = 2 } = options;
  if (!(multiplier >= 2)) throw new RangeError('the multiplier must be at least 2');
  const { production, paper, gaps, coverage_days, days } = history;
  const basis = decideBasis(history);
  const provisional = gaps.map(
    ({ why, count, first }) =>
      `the log has gaps: ${why} occurred ${count} times, first at ${first}`,
  );
  if (basis === 'observed_partial') {
    provisional.push(`the log covers only ${coverage_days} of ${days} days of production`);
  }
  if (basis !== 'assumed') {
    return {
      basis,
      multiplier,
      messages: production.messages.map((peak) => multiplyPeak(peak, multiplier)),
      volume: multiplyVolume(production.volume, multiplier),
      assumption: null,
      provisional,
    };
  }
  const assumption = estimatePeaks(history, options);
  const messages = CLASSES.flatMap((one) =>
    WINDOWS.map((window_s, place) => {
      const most = Math.max(...assumption.candidates.map(({ counts }) => counts[place]!));
      const known = findPeak(paper.messages, one, window_s);
      const out = Math.max(Math.ceil(multiplier * most), assumption.floor);
      const own = Math.ceil(multiplier * (known?.M ?? 0));
      // The venue answers every message, so `out` is a minimum for every class.
      return { class: one, window_s, count: Math.max(out, own), mix: known?.mix ?? [] };
    }),
  );
  provisional.push(`the load is assumed: ${assumption.text}`);
  const volume = multiplyVolume(paper.volume, multiplier);
  return { basis, multiplier, messages, volume, assumption, provisional };
}

function decideBasis({ since, window, production }: History): Basis {
  const sent = findPeak(production.messages, 'out', 86_400)?.M ?? 0;
  if (since === null || sent === 0) return 'assumed';
  const isFull = Date.parse(since) < Date.parse(window.from) + DAY;
  return isFull ? 'observed_full' : 'observed_partial';
}

/** Estimates the load of a bot without history: the largest known candidate, and at least a floor. */
function estimatePeaks(
  { paper }: History,
  { risk, instruments, timeframeMs, throttle, declaredPeak, floor = FLOOR }: PlanOptions,
): Assumption {
  // Number of bars that can close in each window; a strategy sends all its messages at the close of a bar.
  const bars = WINDOWS.map((window_s) => Math.max(1, Math.floor((window_s * 1000) / timeframeMs)));
  const atBars = (count: number) => bars.map((number) => number * count) as unknown as Counts;
  const perSecond = (count: number) =>
    WINDOWS.map((window_s) => window_s * count) as unknown as Counts;
  const most = Math.min(instruments, risk.max_instruments);
  const limit = risk.max_messages_per_second;
  const candidates: Assumption['candidates'] = [
    {
      source: 'paper_peak',
      counts: WINDOWS.map(
        (one) => findPeak(paper.messages, 'out', one)?.M ?? 0,
      ) as unknown as Counts,
    },
    { source: 'order_limits', counts: atBars(most * VENUES * MESSAGES_OF_AN_ORDER) },
    ...(Number.isFinite(limit)
      ? [{ source: 'message_limit' as const, counts: atBars(Math.ceil(limit)) }]
      : []),
    ...(throttle === undefined
      ? []
      : [
          {
            source: 'venue_throttle' as const,
            counts: perSecond((throttle.limit * 1000) / throttle.per_ms),
          },
        ]),
    ...(declaredPeak === undefined
      ? []
      : [{ source: 'declared' as const, counts: atBars(declaredPeak) }]),
  ];
  const text =
    'There is no production history to take peaks from. The load is a multiple of the largest of these: the peaks of paper trading, ' +
    'one order and one cancel per instrument and bar, the message limit, the throttle of the venue, and the declared peak. ' +
    `The load is at least ${floor} messages per window (an internal threshold). ` +
    'A person has to take ownership of this assumption. Run the test again after one, three and six months of production.';
  return { text, candidates, floor, owner: null };
}

type Counts = readonly [number, number, number];

function findPeak(
  peaks: readonly MessagePeak[],
  of: MessageClass,
  window_s: WindowSeconds,
): MessagePeak | undefined {
  return peaks.find((peak) => peak.class === of && peak.window_s === window_s);
}

function multiplyPeak(peak: MessagePeak, multiplier: number): MessageTarget {
  const { class: of, window_s, M, mix } = peak;
  return { class: of, window_s, count: Math.ceil(multiplier * M), mix };
}

function multiplyVolume(peaks: readonly VolumePeak[], multiplier: number): VolumeTarget[] {
  return peaks.map(({ measure, of, window_s, M }) => ({
    measure,
    of,
    window_s,
    amount: measure === 'fills' ? Math.ceil(multiplier * M) : multiplier * M,
  }));
}
