import type { Output } from './output.ts';

/** The columns of a table by their titles. */
export type Columns<T> = Readonly<Record<string, (item: T) => string>>;

/** What a list has, or the one thing that was made or changed. */
export function showItems<T>(out: Output, items: readonly T[], columns: Columns<T>): void {
  if (items.length === 0) {
    out.line('There are none.');
    return;
  }
  out.table(
    Object.keys(columns).map((title) => ({ title })),
    items.map((item) => Object.values(columns).map((cell) => cell(item))),
  );
}
