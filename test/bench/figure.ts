/** One row of the table that `npm run bench` prints. */
export interface Figure {
  readonly what: string;
  readonly floor: string;
  readonly ours: string;
  readonly ratio: number;
  /** Absent where a figure is only for orientation. */
  readonly goal?: string;
  readonly met?: boolean;
}

export interface Goal {
  readonly atLeast?: number;
  readonly atMost?: number;
}

export function figure(
  what: string,
  [floor, ours]: readonly [string, string],
  ratio: number,
  { atLeast = -Infinity, atMost = Infinity }: Goal = {},
): Figure {
  const measured = { what, floor, ours, ratio: round(ratio) };
  const met = ratio >= atLeast && ratio <= atMost;
  if (atLeast > -Infinity) return { ...measured, goal: `≥ ${atLeast}`, met };
  if (atMost < Infinity) return { ...measured, goal: `≤ ${atMost}`, met };
  return measured;
}

export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

export function round(value: number, digits = 3): number {
  return Number(value.toPrecision(digits));
}
