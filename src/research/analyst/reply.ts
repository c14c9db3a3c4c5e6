import type { Citation } from '../answering.ts';

/** An answer. The citations contain its figures as the API returns them. */
export interface Reply {
  readonly text: string;
  readonly citations: readonly Citation[];
}

export function reply(
  text: string | readonly string[],
  ...citations: readonly (Citation | readonly Citation[])[]
): Reply {
  const lines = typeof text === 'string' ? text : text.join('\n');
  return { text: lines, citations: citations.flat() };
}
