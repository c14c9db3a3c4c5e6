/** How a search chooses its combinations. */
export type SearchMethod =
  | { readonly kind: 'grid' }
  | {
      readonly kind: 'random' | 'tpe';
      readonly trials: number;
      /** Whole number below 2^32. */
      readonly seed: number;
    };

/** Defaults of `random` and `tpe`. */
export const SAMPLING_DEFAULTS = { trials: 100, seed: 1 } as const;
