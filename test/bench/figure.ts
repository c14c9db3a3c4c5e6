import { formatTable, makeStyle } from '../../src/cli/output.ts';
import { median, type Measurement } from './measurement.ts';
import type { Goal, Row } from './rows.ts';

/** Result of a row. */
export interface Figure {
  readonly row: string;
  readonly what: string;
  readonly floor: string;
  /** Median of the ratios of all pairs, as a share of speed or a multiple of time, like the goal. */
  readonly ratio: number;
  readonly goal: string;
  readonly met: boolean;
  readonly peak_bytes: number;
  /** Median milliseconds, to judge what was measured; they differ between machines. */
  readonly ms: { readonly floor: number; readonly ours: number };
}

export function figureOf(
  name: string,
  { what, floor, goal }: Pick<Row, 'what' | 'floor' | 'goal'>,
  { pairs, peakBytes }: Measurement,
): Figure {
  const slowdown = pairs.map((pair) => pair.ours / pair.floor);
  const ratio = 'atMost' in goal ? median(slowdown) : median(slowdown.map((times) => 1 / times));
  return {
    row: name,
    what,
    floor,
    goal: formatGoal(goal),
    ratio: round(ratio),
    met: 'atMost' in goal ? ratio <= goal.atMost : ratio >= goal.atLeast,
    peak_bytes: peakBytes,
    ms: {
      floor: round(median(pairs.map((pair) => pair.floor))),
      ours: round(median(pairs.map((pair) => pair.ours))),
    },
  };
}

export async function tableOf(figures: readonly Figure[]): Promise<string> {
  const columns = (['what', 'floor', 'measured', 'goal', 'peak memory', 'goal met'] as const).map(
    (title) => ({ title, align: RIGHT.has(title) ? ('right' as const) : ('left' as const) }),
  );
  const rows = figures.map(({ what, floor, ratio, goal, met, peak_bytes }) => [
    what,
    floor,
    goal.endsWith('×') ? `${ratio}×` : String(ratio),
    goal,
    `${Math.round(peak_bytes / 2 ** 20)} MiB`,
    met ? 'yes' : 'no',
  ]);
  return formatTable(columns, rows, await makeStyle(false));
}

const RIGHT: ReadonlySet<string> = new Set(['measured', 'goal', 'peak memory']);

function formatGoal(goal: Goal): string {
  return 'atMost' in goal ? `≤ ${goal.atMost}×` : `≥ ${goal.atLeast}`;
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}
