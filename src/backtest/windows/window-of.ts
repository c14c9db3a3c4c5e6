import { ServiceError } from '../../base/errors.ts';
import { firstAtLeast } from '../../base/sorted.ts';
import type { Signals } from '../../engine/model-signals.ts';
import { formatTime, type Window } from '../../market/bar-time.ts';
import { followedBy, sliceBars, type Bars } from '../../market/bars.ts';
import { barsDigest } from '../../market/digest.ts';
import type { BacktestJob, JobInstrument } from '../job.ts';
import { lockOf } from '../run-lock.ts';

/**
 * Cuts a job to a window. The bars share memory with the job, and all earlier bars warm up declared
 * indicators. Outputs of models keep what the models computed from earlier bars.
 *
 * `source` and `outsideSessions` of an instrument still describe its whole source.
 *
 * @throws ServiceError `invalid_data` if an instrument has no bar in the window
 */
export function windowOf(job: BacktestJob, window: Partial<Window>): BacktestJob {
  const cuts = cutsOf(job, window);
  const instruments = job.instruments.map((instrument, at) => cutInstrument(instrument, cuts[at]!));
  const isSameStart = cuts.every(({ first }) => first === 0);
  return {
    ...job,
    instruments,
    lock: lockOf({
      ...job.lock,
      data: digestsOf(instruments, ({ bars }) => bars),
      warm_up: digestsOf(instruments, ({ warmUp }) => warmUp),
    }),
    historyNeeds: isSameStart ? job.historyNeeds : undefined,
    signals: job.signals && cutSignals(job.signals, cuts),
  };
}

/** Indices of the bars of a window, `first ≤ index < end`. */
interface Cut {
  readonly first: number;
  readonly end: number;
}

/**
 * Finds the bars of a window for each instrument.
 *
 * @throws ServiceError `invalid_data` if an instrument has none
 */
export function cutsOf({ instruments }: BacktestJob, window: Partial<Window>): Cut[] {
  const { from = -Infinity, to = Infinity } = window;
  return instruments.map(({ symbol, bars }) => {
    const time = bars.time.subarray(0, bars.length);
    const first = firstAtLeast(time, from, 0);
    const end = firstAtLeast(time, to, first);
    if (first < end) return { first, end };
    throw new ServiceError('invalid_data', `${symbol} has no bars ${spanOf({ from, to })}`, {
      remedy: 'Choose windows in which every symbol has bars, or leave the symbol out.',
    });
  });
}

function cutInstrument(instrument: JobInstrument, { first, end }: Cut): JobInstrument {
  const { bars, warmUp, uncovered } = instrument;
  const isAtEdge = { from: first === 0, to: end === bars.length };
  return {
    ...instrument,
    bars: sliceBars(bars, first, end),
    warmUp: warmUp && followedBy(warmUp, sliceBars(bars, 0, first)),
    uncovered: uncovered?.filter(({ edge }) => isAtEdge[edge]),
  };
}

function cutSignals({ names, columns }: Signals, cuts: readonly Cut[]): Signals {
  return {
    names,
    columns: columns.map((own, at) =>
      own.map((column) => column.subarray(cuts[at]!.first, cuts[at]!.end)),
    ),
    counts: Uint32Array.from(cuts, ({ first, end }) => end - first),
  };
}

function digestsOf(
  instruments: readonly JobInstrument[],
  barsOf: (instrument: JobInstrument) => Bars | undefined,
): Record<string, string> {
  const digests = instruments.flatMap((instrument): [string, string][] => {
    const bars = barsOf(instrument);
    return bars === undefined || bars.length === 0 ? [] : [[instrument.symbol, barsDigest(bars)]];
  });
  return Object.fromEntries(digests);
}

function spanOf({ from, to }: Window): string {
  const parts = [
    ...(from === -Infinity ? [] : [`from ${formatTime(from)}`]),
    ...(to === Infinity ? [] : [`before ${formatTime(to)}`]),
  ];
  return parts.join(' and ');
}
