import type { FeedItem } from './feed.ts';
import type { Bars } from '../market/bars.ts';

/**
 * Where the bars of a session come from. A session that goes on after a restart asks for what comes
 * after the last bars that were recorded, and never for anything twice.
 */
export interface SessionFeed {
  /** How many steps there are, where that is known. */
  readonly total: number | null;
  /** Length of a bar, ms. */
  readonly barMs: number;
  /** What a person should know of the data, as sentences. */
  readonly notes: readonly string[];
  /**
   * Steps, and what is to be known of the data between them. It ends where the data do.
   *
   * @param after time of the last step that was recorded, ms; undefined for all.
   * @param signal iterating throws its reason.
   */
  items(after: number | undefined, signal: AbortSignal): AsyncIterable<FeedItem>;
  /** Of the bars of an instrument that were taken: how many they were before they were made longer, and how many were missing. */
  source(symbol: string, taken: Bars): { readonly bars: number; readonly missing: number };
}
