import type { Output } from './output.ts';

type Side = Readonly<Record<string, unknown>> | null;

/** Two things that should be one, a row for each field of either. */
export function showSides(
  out: Output,
  [one, other]: readonly [string, string],
  left: Side,
  right: Side,
): void {
  const names = new Set([...Object.keys(left ?? {}), ...Object.keys(right ?? {})]);
  out.table(
    [{ title: '' }, { title: one }, { title: other }, { title: '' }],
    [...names].map((name) => {
      const cells = [left, right].map((side) => textOf(side?.[name]));
      return [name, ...cells, cells[0] === cells[1] ? '' : '≠'];
    }),
  );
}

function textOf(value: unknown): string {
  if (value === undefined) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
