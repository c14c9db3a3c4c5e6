import type { Output } from './output.ts';

type Side = Readonly<Record<string, unknown>> | null;

/** Prints two records that should be equal, one row per field, and marks the differences. */
export function showComparison(
  out: Output,
  [one, other]: readonly [string, string],
  left: Side,
  right: Side,
): void {
  const names = new Set([...Object.keys(left ?? {}), ...Object.keys(right ?? {})]);
  out.table(
    [{ title: '' }, { title: '' }, { title: one }, { title: other }],
    [...names].map((name) => {
      const cells = [left, right].map((side) => formatField(side?.[name]));
      return [cells[0] === cells[1] ? '' : '≠', name, ...cells];
    }),
  );
}

function formatField(value: unknown): string {
  if (value === undefined) return '–';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
