import type { FeedItem } from './feed.ts';
import type { Bars } from '../market/bars.ts';

/**
 * Source of the bars of a session. A session that resumes requests only the steps after the last
 * recorded one.
 */
export interface SessionFeed {
  /** Count of all steps; null if unknown. */
  readonly total: number | null;
  /** Duration of a bar, ms. */
  readonly barMs: number;
  /** Notes for the report, as sentences. */
  readonly notes: readonly string[];
  /**
   * Iterates over steps, gaps and rejected bars until the data ends.
   *
   * @param after time of the last recorded step, ms since epoch; undefined for all steps.
   * @param signal iterating throws its reason.
   */
  items(after: number | undefined, signal: AbortSignal): AsyncIterable<FeedItem>;
  /**
   * Describes the source of bars taken from this feed: their count before resampling, and how many
   * are missing.
   */
  source(symbol: string, taken: Bars): { readonly bars: number; readonly missing: number };
}
