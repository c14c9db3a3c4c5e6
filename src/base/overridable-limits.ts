/** Limits on price and size, which three people may override for one order (RTS 6, article 15(6)). */
export const OVERRIDABLE_LIMITS = [
  'max_order_value',
  'max_order_qty',
  'price_collar_bps',
  'price_collar_period',
  'max_position_pct',
  'max_instruments',
  'threshold_order_value',
  'threshold_order_qty',
  'threshold_gross_exposure',
] as const;
