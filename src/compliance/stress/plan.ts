/** From the busiest moments to what a bot has to withstand. */
import type { RiskLimits } from '../../engine/config.ts';
import { DAY } from '../../market/time.ts';
import {
  CLASSES,
  WINDOWS,
  type History,
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
  /** Messages in a stretch of that length. */
  readonly count: number;
  /** Of the peak, whose parts it keeps; empty where there is none. */
  readonly mix: readonly Mix[];
}

export type VolumeTarget = Pick<VolumePeak, 'measure' | 'of' | 'window_s'> & {
  readonly amount: number;
};

/** What stands in for six months of production. */
export interface Assumption {
  readonly text: string;
  /** Messages out in a second, a minute and a day, by where they come from; the largest counts. */
  readonly candidates: readonly {
    readonly source:
      | 'paper_peak'
      | 'order_limits'
      | 'message_limit'
      | 'venue_throttle'
      | 'declared';
    readonly counts: readonly [second: number, minute: number, day: number];
  }[];
  /** A house number: so many messages in a second at least. */
  readonly floor: number;
  /** For a person: nobody is named by default. */
  readonly owner: null;
}

export interface Plan {
  readonly basis: Basis;
  readonly multiplier: number;
  readonly messages: readonly MessageTarget[];
  readonly volume: readonly VolumeTarget[];
  readonly assumption: Assumption | null;
  /** Why a verdict can be no more than provisional. */
  readonly provisional: readonly string[];
}

export interface PlanOptions {
  /** 2 by Article 10; more is allowed. */
  readonly multiplier?: number;
  readonly risk: RiskLimits;
  readonly instruments: number;
  /** Of the bars at which it decides, ms. */
  readonly timeframeMs: number;
  /** Of its venue, where that is known. */
  readonly throttle?: { readonly limit: number; readonly per_ms: number } | undefined;
  /** By whoever asks for the test: messages out per second. */
  readonly declaredPeak?: number | undefined;
  /** Messages per second that are assumed at least, before nothing else is. */
  readonly floor?: number;
}

const FLOOR = 1000;
const VENUES = 1;
/** To place an order and to cancel it. */
const MESSAGES_OF_AN_ORDER = 2;

export function planStress(history: History, options: PlanOptions): Plan {
  const { multiplier = 2 } = options;
  if (!(multiplier >= 2)) throw new RangeError('the multiplier is 2 at least');
  const { production, paper, gaps, coverage_days, days } = history;
  const basis = basisOf(history);
  const provisional = gaps.map(
    ({ why, count, first }) => `the log has gaps: ${why}, ${count} times, first at ${first}`,
  );
  if (basis === 'observed_partial') {
    provisional.push(`production is known of ${coverage_days} days of ${days} only`);
  }
  if (basis !== 'assumed') {
    return {
      basis,
      multiplier,
      messages: production.messages.map((peak) => targetOf(peak, multiplier)),
      volume: volumeTargets(production.volume, multiplier),
      assumption: null,
      provisional,
    };
  }
  const assumption = assume(history, options);
  const messages = CLASSES.flatMap((one) =>
    WINDOWS.map((window_s, place) => {
      const most = Math.max(...assumption.candidates.map(({ counts }) => counts[place]!));
      const known = peakOf(paper.messages, one, window_s);
      const out = Math.max(Math.ceil(multiplier * most), assumption.floor);
      const own = Math.ceil(multiplier * (known?.M ?? 0));
      // Whatever is sent is answered.
      return { class: one, window_s, count: Math.max(out, own), mix: known?.mix ?? [] };
    }),
  );
  provisional.push(`what is to be withstood is assumed: ${assumption.text}`);
  const volume = volumeTargets(paper.volume, multiplier);
  return { basis, multiplier, messages, volume, assumption, provisional };
}

function basisOf({ since, window, production }: History): Basis {
  const sent = peakOf(production.messages, 'out', 86_400)?.M ?? 0;
  if (since === null || sent === 0) return 'assumed';
  const isFull = Date.parse(since) < Date.parse(window.from) + DAY;
  return isFull ? 'observed_full' : 'observed_partial';
}

/** The rule where there is no history: the largest of what is known, and a floor. */
function assume(
  { paper }: History,
  { risk, instruments, timeframeMs, throttle, declaredPeak, floor = FLOOR }: PlanOptions,
): Assumption {
  // All that it does at a bar it does at once: so many bars can close in each window.
  const bars = WINDOWS.map((window_s) => Math.max(1, Math.floor((window_s * 1000) / timeframeMs)));
  const atBars = (count: number) => bars.map((number) => number * count) as unknown as Counts;
  const perSecond = (count: number) =>
    WINDOWS.map((window_s) => window_s * count) as unknown as Counts;
  const most = Math.min(instruments, risk.max_instruments);
  const limit = risk.max_messages_per_second;
  const candidates: Assumption['candidates'] = [
    {
      source: 'paper_peak',
      counts: WINDOWS.map((one) => peakOf(paper.messages, 'out', one)?.M ?? 0) as unknown as Counts,
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
    'There is no production history to take peaks from. Twice the largest of the peaks of paper trading, ' +
    'of what the limits of orders allow on each instrument and venue, of the message limit, of the throttle of the ' +
    `venue and of what was declared is taken, and at least ${floor} messages in a second (a house number). ` +
    'Somebody has to own this assumption; the test is to be run again after one, three and six months of production.';
  return { text, candidates, floor, owner: null };
}

type Counts = readonly [number, number, number];

function peakOf(
  peaks: readonly MessagePeak[],
  of: MessageClass,
  window_s: WindowSeconds,
): MessagePeak | undefined {
  return peaks.find((peak) => peak.class === of && peak.window_s === window_s);
}

function targetOf(peak: MessagePeak, multiplier: number): MessageTarget {
  const { class: of, window_s, M, mix } = peak;
  return { class: of, window_s, count: Math.ceil(multiplier * M), mix };
}

function volumeTargets(peaks: readonly VolumePeak[], multiplier: number): VolumeTarget[] {
  return peaks.map(({ measure, of, window_s, M }) => ({
    measure,
    of,
    window_s,
    amount: measure === 'fills' ? Math.ceil(multiplier * M) : multiplier * M,
  }));
}
