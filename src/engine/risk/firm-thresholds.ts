/** Account currency, units, or messages per second of bar time. */
export interface Threshold {
  readonly value: number;
}

/** Of one instrument. */
export interface InstrumentThresholds {
  readonly max_order_value?: Threshold | undefined;
  readonly max_order_qty?: Threshold | undefined;
  /** Its position, and what works on the order's side of it. */
  readonly max_gross_exposure?: Threshold | undefined;
}

/**
 * Thresholds of the firm for a run, which can change during the run. They apply in addition to the
 * run's own limits, so that the tightest wins. An absent threshold does not apply.
 */
export interface Thresholds {
  readonly max_order_value?: Threshold | undefined;
  /** All positions, long and short, once what works is filled. */
  readonly max_gross_exposure?: Threshold | undefined;
  /** Since the last close of the UTC day before. */
  readonly max_daily_loss?: Threshold | undefined;
  readonly max_messages_per_second?: Threshold | undefined;
  /** By symbol. */
  readonly instruments?: Readonly<Record<string, InstrumentThresholds>> | undefined;
}
