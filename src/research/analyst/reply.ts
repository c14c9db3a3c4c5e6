import type { Citation } from '../answering.ts';

/** An answer. The citations contain its figures as the API returns them. */
export interface Reply {
  readonly text: string;
  readonly citations: readonly Citation[];
}

/** The last line of a list that shows part of its entries. */
export function andMore(all: readonly unknown[], shown: readonly unknown[]): string[] {
  const more = all.length - shown.length;
  return more > 0 ? [`- and ${more} more`] : [];
}

export function reply(
  text: string | readonly string[],
  ...citations: readonly (Citation | readonly Citation[])[]
): Reply {
  const lines = typeof text === 'string' ? text : text.join('\n');
  return { text: lines, citations: citations.flat() };
}
