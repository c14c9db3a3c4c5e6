import { formatCountOf } from '../../base/format.ts';
import { firstAtLeast } from '../../base/sorted.ts';
import { mergeTimes } from '../../engine/steps.ts';
import type { EngineConfig } from '../../engine/config.ts';
import type { BacktestJob } from '../job.ts';
import { windowOf } from '../windows/window-of.ts';

export type StressName =
  | 'fees_doubled'
  | 'slippage_doubled'
  | 'one_bar_late'
  | 'start_shifted'
  | 'symbol_left_out';

/** A change of the conditions that a robust strategy survives. */
export interface Stress {
  readonly name: StressName;
  readonly label: string;
  readonly job: BacktestJob;
}

/** Bars by which the start of the run is shifted from the bar of its first order. */
const OFFSETS = [1, 2, 5, 20, 100];

/**
 * Returns the stresses that apply: fees of zero cannot double, and a single symbol cannot be left out.
 *
 * @param firstOrder time of the first order of the run. Starts before it would mostly repeat the run, since
 *   earlier bars warm up declared indicators.
 */
export function stressesOf(job: BacktestJob, firstOrder: number | undefined): Stress[] {
  const { config, instruments } = job;
  const { fees, slippage } = config;
  const withConfig = (changes: Partial<EngineConfig>): BacktestJob => ({
    ...job,
    config: { ...config, ...changes },
  });
  const stresses: Stress[] = [];
  if (fees.model !== 'none') {
    const doubled = { ...fees, rate: 2 * fees.rate, min: 2 * fees.min };
    stresses.push({
      name: 'fees_doubled',
      label: 'fees × 2',
      job: withConfig({ fees: doubled }),
    });
  }
  if (slippage.model !== 'none') {
    const doubled =
      slippage.model === 'basis_points'
        ? { ...slippage, bps: 2 * slippage.bps }
        : { ...slippage, impact: 2 * slippage.impact };
    stresses.push({
      name: 'slippage_doubled',
      label: 'slippage × 2',
      job: withConfig({ slippage: doubled }),
    });
  }
  stresses.push({
    name: 'one_bar_late',
    label: 'orders one bar late',
    job: withConfig({ ordersAreLate: true }),
  });
  const times = mergeTimes(instruments.map(({ bars }) => bars));
  const first = firstOrder === undefined ? 0 : firstAtLeast(times, firstOrder, 0);
  const last = Math.min(...instruments.map(({ bars }) => bars.time[bars.length - 1]!));
  for (const offset of OFFSETS) {
    const from = times[first + offset];
    if (2 * offset > times.length - first || from === undefined || from > last) break;
    const bars = formatCountOf(offset, 'bar');
    stresses.push({
      name: 'start_shifted',
      label: `start ${bars} after the first ${firstOrder === undefined ? 'bar' : 'order'}`,
      job: windowOf(job, { from }),
    });
  }
  if (instruments.length > (job.strategy.instruments?.min ?? 1)) {
    for (const [left, { symbol }] of instruments.entries()) {
      stresses.push({
        name: 'symbol_left_out',
        label: `without ${symbol}`,
        job: withoutInstrument(job, left),
      });
    }
  }
  return stresses;
}

function withoutInstrument(job: BacktestJob, left: number): BacktestJob {
  const { instruments, signals } = job;
  const isKept = (_: unknown, at: number): boolean => at !== left;
  return {
    ...job,
    instruments: instruments.filter(isKept),
    signals: signals && {
      ...signals,
      columns: signals.columns.filter(isKept),
      counts: signals.counts.filter(isKept),
    },
  };
}
