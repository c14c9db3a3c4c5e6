import type { Output } from './output.ts';

export type Columns<T> = Readonly<Record<string, (item: T) => string>>;

export function showItems<T>(out: Output, items: readonly T[], columns: Columns<T>): void {
  if (items.length === 0) {
    out.line('No entries.');
    return;
  }
  out.table(
    Object.keys(columns).map((title) => ({ title })),
    items.map((item) => Object.values(columns).map((cell) => cell(item))),
  );
}
