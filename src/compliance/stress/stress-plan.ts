/** Derives the load that a bot must withstand from the peaks of its history. */
import { engineConfig, type BotSpec } from '../../bots/spec.ts';
import { DAY } from '../../base/durations.ts';
import { parseTimeframe } from '../../market/timeframe.ts';
import type { History } from './history.ts';
import { CLASSES, findMessages, WINDOWS } from './peaks.ts';
import type { MessagePeak, VolumePeak } from './peaks.ts';

/** Keeps the mix of the peak, which is empty without a peak. */
export interface MessageTarget extends Pick<MessagePeak, 'class' | 'window_s' | 'mix'> {
  readonly count: number;
}

export interface VolumeTarget extends Pick<VolumePeak, 'measure' | 'of' | 'window_s'> {
  readonly amount: number;
}

/** Replaces the peaks of a bot without production history. */
export interface Assumption {
  readonly text: string;
  readonly candidates: readonly Candidate[];
  /** Minimum messages per window. */
  readonly floor: number;
  /** Always null: a person has to take ownership of the assumption. */
  readonly owner: null;
}

interface Candidate {
  readonly source: 'paper_peak' | 'order_limits' | 'message_limit' | 'declared';
  /** Outgoing messages in each of `WINDOWS`. */
  readonly counts: readonly number[];
}

export interface Plan {
  readonly basis: 'observed_full' | 'observed_partial' | 'assumed';
  readonly multiplier: number;
  readonly messages: readonly MessageTarget[];
  readonly volume: readonly VolumeTarget[];
  readonly assumption: Assumption | null;
  /** Reasons why the verdict cannot be better than provisional. */
  readonly provisional: readonly string[];
}

export interface PlanOptions {
  /** Article 10 requires 2, which is the default. */
  readonly multiplier?: number;
  /** Outgoing messages per bar that the caller expects. */
  readonly declaredPeak?: number | undefined;
}

/** Minimum messages per window without history, an internal threshold. */
const FLOOR = 1000;
const ASSUMED =
  'There is no production history to take peaks from. The load is a multiple of the largest of these: the peaks of paper trading, ' +
  'one order and one cancel per instrument and bar, the message limit, and the declared peak. ' +
  `The load is at least ${FLOOR} messages per window (an internal threshold). ` +
  'A person has to take ownership of this assumption. Run the test again after one, three and six months of production.';

export function planStress(
  history: History,
  spec: BotSpec,
  { multiplier = 2, declaredPeak }: PlanOptions = {},
): Plan {
  const { production, paper, gaps, coverage_days, days } = history;
  const basis = decideBasis(history);
  const isAssumed = basis === 'assumed';
  const { messages, volume } = isAssumed ? paper : production;
  const candidates = isAssumed ? listCandidates(history, spec, declaredPeak) : [];
  return {
    basis,
    multiplier,
    messages: isAssumed
      ? assumeMessages(messages, candidates, multiplier)
      : messages.map(({ class: of, window_s, M, mix }) => ({
          class: of,
          window_s,
          count: Math.ceil(multiplier * M),
          mix,
        })),
    volume: volume.map(({ measure, of, window_s, M }) => ({
      measure,
      of,
      window_s,
      amount: measure === 'fills' ? Math.ceil(multiplier * M) : multiplier * M,
    })),
    assumption: isAssumed ? { text: ASSUMED, candidates, floor: FLOOR, owner: null } : null,
    provisional: [
      ...gaps.map(
        ({ why, count, first }) =>
          `the log has gaps: ${why} occurred ${count} times, first at ${first}`,
      ),
      ...(basis === 'observed_partial'
        ? [`the log covers only ${coverage_days} of ${days} days of production`]
        : []),
      ...(isAssumed ? [`the load is assumed: ${ASSUMED}`] : []),
    ],
  };
}

function decideBasis({ since, window, production }: History): Plan['basis'] {
  const sent = findMessages(production.messages, 'out', 86_400)?.M ?? 0;
  if (since === null || sent === 0) return 'assumed';
  const isFull = Date.parse(since) < Date.parse(window.from) + DAY;
  return isFull ? 'observed_full' : 'observed_partial';
}

function assumeMessages(
  paper: readonly MessagePeak[],
  candidates: readonly Candidate[],
  multiplier: number,
): MessageTarget[] {
  return CLASSES.flatMap((one) =>
    WINDOWS.map((window_s, place) => {
      const most = Math.max(...candidates.map(({ counts }) => counts[place]!));
      const { M = 0, mix = [] } = findMessages(paper, one, window_s) ?? {};
      // The venue answers every message, so `most` is a minimum for every class.
      const count = Math.max(FLOOR, Math.ceil(multiplier * most), Math.ceil(multiplier * M));
      return { class: one, window_s, count, mix };
    }),
  );
}

/** Estimates the outgoing messages of a bot without history; the largest candidate applies. */
function listCandidates(
  { paper }: History,
  spec: BotSpec,
  declaredPeak: number | undefined,
): Candidate[] {
  const { risk } = engineConfig(spec);
  const { ms } = parseTimeframe(spec.spec.data.timeframe);
  // A strategy sends all its messages at the close of a bar.
  const atBars = (count: number): number[] =>
    WINDOWS.map((window_s) => count * Math.max(1, Math.floor((window_s * 1000) / ms)));
  const instruments = Math.min(spec.spec.universe.symbols.length, risk.max_instruments);
  const limit = risk.max_messages_per_second;
  const peaks = WINDOWS.map((one) => findMessages(paper.messages, 'out', one)?.M ?? 0);
  return [
    { source: 'paper_peak', counts: peaks },
    // Each order takes one message, and its cancel another one.
    { source: 'order_limits', counts: atBars(instruments * 2) },
    ...(Number.isFinite(limit)
      ? [{ source: 'message_limit' as const, counts: atBars(Math.ceil(limit)) }]
      : []),
    ...(declaredPeak === undefined
      ? []
      : [{ source: 'declared' as const, counts: atBars(declaredPeak) }]),
  ];
}
