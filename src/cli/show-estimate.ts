import type { SearchEstimate } from '../backtest/shards/estimate-search.ts';
import { HOUR, MINUTE } from '../base/durations.ts';
import { formatCountOf, formatNumber, formatSpan } from '../base/format.ts';
import type { Output } from './output.ts';

interface Estimate extends SearchEstimate {
  readonly cores: number;
  /** Duration in hours if all cores are busy that the shards can use at once. */
  readonly hours: number;
  /** Bytes of the input that all workers or all pods read: a worker once, and each pod again. */
  readonly transfer_bytes: { readonly workers: number; readonly pods: number };
}

const MB = 1024 * 1024;

export function showEstimate(out: Output, estimate: Estimate): void {
  const { trials, skipped, shards, trials_per_shard, parallel_shards, bars, pilot } = estimate;
  const {
    seconds_per_trial,
    seconds_per_shard,
    core_hours,
    cores,
    hours,
    input_bytes,
    result_bytes,
    transfer_bytes,
  } = estimate;
  const without = skipped === 0 ? '' : `, ${formatNumber(skipped)} combinations skipped`;
  const failed = pilot.failed === 0 ? '' : `, ${pilot.failed} of which failed`;
  const rows = [
    ['trials', `${formatNumber(trials)} over ${formatCountOf(bars, 'bar')}${without}`],
    ['shards', `${formatNumber(shards)} of at most ${formatCountOf(trials_per_shard, 'trial')}`],
    ['shards at once', `at most ${formatNumber(parallel_shards)}`],
    ['pilot', `${formatCountOf(pilot.trials, 'trial')}${failed}`],
    ['time of a trial', `${rounded(seconds_per_trial * 1000)} ms`],
    ['time of a shard beside its trials', `${rounded(seconds_per_shard * 1000)} ms`],
    ['processor time', formatCoreTime(core_hours * HOUR)],
    ['duration', `${formatDuration(hours * HOUR)} on ${formatCountOf(cores, 'core')}`],
    ['input of a worker or pod', `${rounded(input_bytes / MB)} MiB`],
    ['input of all workers', `${rounded(transfer_bytes.workers / MB)} MiB`],
    ['input of all pods', `${rounded(transfer_bytes.pods / MB)} MiB`],
    ['results', `${rounded(result_bytes / MB)} MiB`],
  ];
  out.table([{ title: 'figure' }, { title: 'estimate' }], rows);
}

/** `15 core seconds`: in the largest unit that gives at least two. */
function formatCoreTime(ms: number): string {
  if (ms >= 2 * HOUR) return `${rounded(ms / HOUR)} core hours`;
  if (ms >= 2 * MINUTE) return `${rounded(ms / MINUTE)} core minutes`;
  return `${rounded(ms / 1000)} core seconds`;
}

function formatDuration(ms: number): string {
  return ms < 1000 ? 'less than a second' : formatSpan(ms);
}

/** Two significant digits, since it is an estimate. */
function rounded(value: number): string {
  return formatNumber(Number(value.toPrecision(2)));
}
