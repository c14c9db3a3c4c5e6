import type { Page } from '../storage/paging.ts';

export function serializePage<T, A>({ items, next_cursor }: Page<T>, answer: (item: T) => A) {
  return { items: items.map(answer), next_cursor };
}
