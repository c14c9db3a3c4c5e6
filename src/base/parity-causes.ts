/**
 * `data`: a bar differs; `gap`: a bar is missing on one side; `version`, `params`, `engine`: these differ
 * between session and backtest; `halt`, `stop`, `failure`: one side ended earlier in this way; `fill`,
 * `order`: a fill or an order differs although the bars are equal.
 */
export const PARITY_CAUSES = [
  'data',
  'gap',
  'version',
  'params',
  'engine',
  'halt',
  'stop',
  'failure',
  'fill',
  'order',
] as const;
export type ParityCause = (typeof PARITY_CAUSES)[number];
