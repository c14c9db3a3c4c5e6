/**
 * `summary.json`, which `backtest --json` prints, too. Percentages are shares (0.12 is 12 %), drawdowns
 * are negative, times are RFC 3339 in UTC, and money is in the account currency. An undefined statistic
 * is `null`, and `undefined` contains the reason. `RUN_FIGURES` describes the figures.
 */
export interface Summary {
  readonly schema: 'service-local/backtest/v1';
  readonly run_id: string;
  readonly bot: { readonly name: string; readonly slug: string };
  /** sha256 of the spec as authored (JCS), without comments or formatting. */
  readonly version: string;
  /**
   * Hash of the files that a server ran instead of the files of the version, computed as the
   * `bundle_hash` of a version; null if it ran no files. Absent if it ran the files of the version.
   */
  readonly unsaved_bundle?: string | null;
  readonly lock: Lock;
  /** Parameters of the strategy; absent in summaries of earlier versions, as `currency`. */
  readonly params?: Readonly<Record<string, number | string | boolean>>;
  /** Account currency, such as `USD`. */
  readonly currency?: string;
  /** First and last bar of the run, and the number of bars of all instruments. */
  readonly window: { readonly from: string; readonly to: string; readonly bars: number };
  readonly engine: {
    readonly version: string;
    readonly seed: number;
    readonly wall_ms: number;
    readonly bars_per_second: number;
  };
  readonly conventions: Conventions;
  readonly equity: { readonly start: number; readonly end: number; readonly peak: number };
  readonly returns: ReturnStatistics;
  readonly risk: RiskStatistics;
  readonly trades: TradeStatistics;
  readonly costs: {
    readonly fees: number;
    readonly slippage: number;
    readonly turnover: number | null;
  };
  readonly exposure: { readonly time: number };
  /** Absent in summaries of earlier versions. */
  readonly benchmark?: BenchmarkStatistics;
  readonly orders: {
    readonly submitted: number;
    readonly filled: number;
    readonly fills: number;
    readonly canceled: number;
    readonly expired: number;
    readonly working: number;
    readonly rejected: number;
    readonly denied: number;
    /**
     * Rejected, denied, or canceled by a limit after they had been accepted. Absent in summaries of
     * earlier versions.
     */
    readonly refused?: number;
    /** Number of refused orders by reason. */
    readonly reasons: Readonly<Record<string, number>>;
  };
  readonly ambiguity: { readonly bars: number };
  readonly margin_calls: number;
  /** Absent if the run is not counted in a trial ledger. */
  readonly deflated_sharpe?: RunDeflatedSharpe | undefined;
  /** Absent if the spec declares none. */
  readonly holdout?: Holdout | undefined;
  readonly gates: readonly Gate[];
  readonly findings: readonly Finding[];
  /** Names of the files of the run, sorted. Absent in summaries of earlier versions. */
  readonly files: readonly string[];
  readonly hashes: {
    /** sha256 of `events.ndjson`. */
    readonly events: string;
    /** sha256 of `trades.csv`. */
    readonly trades: string;
    /**
     * sha256 of `equity.csv`. If `files` does not contain it, of the columns `time` (ms since the
     * epoch) and `equity` as little-endian float64, because their text would take longer than the run.
     */
    readonly equity: string;
  };
  /** Reason for each statistic that is `null`, keyed by its path, such as `risk.sharpe`. */
  readonly undefined: Readonly<Record<string, UndefinedReason>>;
  /** Statistics in another library's conventions; present with `--profile`. */
  readonly profile?: {
    readonly name: string;
    readonly statistics: Readonly<Record<string, number | null>>;
  };
}

export const UNDEFINED_REASONS = {
  too_few_returns: 'there are too few returns',
  zero_variance: 'the returns do not vary',
  too_few_trials: 'fewer than two trials on these data have a Sharpe ratio',
  no_negative_returns: 'no return was negative',
  no_drawdown: 'equity never fell',
  no_closed_trades: 'no trade was closed',
  no_losing_trades: 'no trade lost',
  no_winning_trades: 'no trade won',
  window_too_short: 'the window is too short to annualize',
  equity_not_positive: 'equity fell to zero or below',
  in_sample_not_positive: 'the return in training is not positive',
  constant_benchmark: 'the returns of the benchmark do not vary',
  equals_benchmark: 'the returns equal those of the benchmark',
} as const;
export type UndefinedReason = keyof typeof UNDEFINED_REASONS;

/** Everything that determines a result: equal locks produce equal event hashes. */
export interface Lock {
  /** sha256 over the rest of the lock (JCS) without `trials`, so that later runs can be compared. */
  readonly digest: string;
  readonly spec: string;
  readonly engine: string;
  readonly seed: number;
  /** Name of a built-in strategy, or sha256 of its files, keyed by the path relative to the spec. */
  readonly strategy: string | Readonly<Record<string, string>>;
  /** `barsDigest` of the bars of the run, by symbol. */
  readonly data: Readonly<Record<string, string>>;
  /**
   * `barsDigest` of the bars before the run that fed declared indicators, by symbol. Absent if none
   * did.
   */
  readonly warm_up?: Readonly<Record<string, string>> | undefined;
  /** `barsDigest` of the benchmark that the spec names. Absent if it names none. */
  readonly benchmark?: string | undefined;
  /** Absent where the spec has no models. */
  readonly models?: ModelsLock | undefined;
  /**
   * File, network and process APIs that the strategy used, such as `node:fs`: the result can depend
   * on inputs that this lock does not cover. Absent if it used none.
   */
  readonly outside?: readonly string[] | undefined;
  /** Captured from the trial ledger. Absent if the run was not counted. */
  readonly trials?: EarlierTrials | undefined;
}

/**
 * Trials of a family on the data of a run when it started. The trials of the run itself are excluded,
 * except those of a walk-forward analysis.
 */
export interface EarlierTrials {
  readonly count: number;
  /** Number of these with a Sharpe ratio. */
  readonly sharpe_count: number;
  /** Mean of the annualized Sharpe ratios at the length of the run (`sharpeAtLength`); null without any. */
  readonly sharpe_mean: number | null;
  /** Their sample variance (ddof 1); null for fewer than two. */
  readonly sharpe_variance: number | null;
}

/** The last period of the data, which searches do not use. */
export interface Holdout {
  /** Length of the period as written in the bot file: `1y`. */
  readonly period: string;
  /** First and last bar of the period, RFC 3339. */
  readonly from: string;
  readonly to: string;
  /** Whether this run includes it. */
  readonly is_open: boolean;
  /** How often it was opened, this run included; null if that is unknown. */
  readonly opened: number | null;
  /** Number of earlier trials that included bars of it; null if that is unknown. */
  readonly trials: number | null;
}

export interface ModelsLock {
  /** Name and version of the runtime. */
  readonly runtime: string;
  /** sha256 of each model's file, by the name of the model. */
  readonly files: Readonly<Record<string, string>>;
}

export interface Conventions {
  readonly periods_per_year: number;
  /** Days per year in `cagr`. */
  readonly year_days: number;
  readonly ddof: number;
  readonly risk_free: number;
  /** Equity is sampled at the last close of each UTC day, or of each week or month for longer bars. */
  readonly sampling: 'day' | 'week' | 'month';
  readonly return_kind: 'simple';
  /** Sortino divides by the root mean square of the shortfalls over all returns. */
  readonly downside: 'full_n';
  readonly trades: 'flat_to_flat';
  readonly numbers: 'float64';
}

export interface ReturnStatistics {
  readonly total: number;
  /** Number of sampled returns; see `Conventions.sampling`. */
  readonly count: number;
  readonly cagr: number | null;
  readonly annual: number | null;
  readonly best_day: number | null;
  readonly worst_day: number | null;
}

export interface RiskStatistics {
  readonly volatility: number | null;
  readonly sharpe: number | null;
  readonly sortino: number | null;
  readonly calmar: number | null;
  readonly max_drawdown: number;
  readonly max_drawdown_days: number;
  readonly var_95: number | null;
  readonly cvar_95: number | null;
}

/** Correction of the Sharpe ratio for the trials in `lock.trials` and this one. */
export interface RunDeflatedSharpe {
  /** Probability that the true Sharpe ratio exceeds `expected_max_sharpe`. */
  readonly probability: number | null;
  /** Expected Sharpe ratio of the best of as many trials without skill, annualized. */
  readonly expected_max_sharpe: number | null;
  /** Number of trials, this one included. */
  readonly trials: number;
}

export interface TradeStatistics {
  readonly count: number;
  readonly open: number;
  readonly win_rate: number | null;
  readonly profit_factor: number | null;
  readonly expectancy: number | null;
  readonly average: number | null;
  readonly best: number | null;
  readonly worst: number | null;
  readonly sqn: number | null;
  readonly kelly: number | null;
}

export interface BenchmarkStatistics {
  /** `buy_and_hold` for the instruments of the run, else the symbol, or the name of the file or dataset. */
  readonly name: string;
  /** Chosen file or `catalog://NAME`; absent for `buy_and_hold` and a symbol of the bot. */
  readonly source?: string;
  /** `barsDigest` of a chosen series; absent for `buy_and_hold`. */
  readonly data?: string;
  /** This and the next four describe the benchmark itself, by the formulas of the run. */
  readonly total: number;
  readonly cagr: number | null;
  readonly volatility: number | null;
  readonly sharpe: number | null;
  readonly max_drawdown: number;
  /** This and the next four relate the run to the benchmark. */
  readonly alpha: number | null;
  readonly beta: number | null;
  readonly correlation: number | null;
  readonly tracking_error: number | null;
  readonly information_ratio: number | null;
}

export interface Gate {
  readonly name: string;
  readonly op: '>=' | '<=' | '>' | '<';
  readonly threshold: number;
  readonly value: number | null;
  readonly pass: boolean;
  readonly reason?: UndefinedReason;
}

/** A reason to doubt a result, with the numbers that show it and what to do about it. */
export interface Finding {
  readonly code: string;
  readonly severity: 'info' | 'warning' | 'critical';
  readonly issue: string;
  readonly evidence: Readonly<Record<string, number | string>>;
  readonly remedy: string;
}

/** A summary before its files are complete. */
export type UnhashedSummary = Omit<Summary, 'hashes'>;
