import type { Page } from '../storage/paging.ts';

/** Part of a list as it is answered. */
export function serializePage<T, A>({ items, next_cursor }: Page<T>, answer: (item: T) => A) {
  return { items: items.map(answer), next_cursor };
}
