/** A `percent` is stored as a share: 0.12 is 12 %. `money` is in the account currency. */
export type FigureUnit = 'percent' | 'ratio' | 'money' | 'count' | 'days';

/** The conventions of a run and its account currency, on which some formulas depend. */
export interface FormulaTerms {
  readonly periods_per_year: number;
  readonly year_days: number;
  readonly ddof: number;
  readonly risk_free: number;
  readonly sampling: 'day' | 'week' | 'month';
  readonly currency: string;
}

export interface RunFigure {
  /** Block and name in the summary. */
  readonly path: string;
  readonly label: string;
  readonly unit: FigureUnit;
  /** Least and greatest possible value, both included. Only figures with a range can be gates. */
  readonly range?: readonly [least: number, greatest: number];
  readonly formula: string | ((terms: FormulaTerms) => string);
  /** Which of two values is better, all else equal; absent if no direction is better. */
  readonly better?: 'higher' | 'lower';
}
