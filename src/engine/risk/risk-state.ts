/** State of an account's loss limits and of `repeated_execution`. Plain JSON. */
export interface RiskState {
  /** Highest equity at a close. */
  readonly peak_equity: number;
  /** Equity at the last close before `day`, from which the loss of that day is measured. */
  readonly day_start_equity: number;
  /** The trading day of the newest step, as `YYYY-MM-DD`; null before the first. */
  readonly day: string | null;
  /** Times of recent executions, ms, oldest first; set only if `repeated_execution` is limited. */
  readonly executions?: readonly RecentExecutions[] | undefined;
}

export interface RecentExecutions {
  readonly symbol: string;
  readonly side: 'buy' | 'sell';
  readonly times: readonly number[];
}
