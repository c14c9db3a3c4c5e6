import {
  formatCount,
  formatCountOf,
  formatMoney,
  formatNumber,
  formatPercent,
  formatRatio,
  NO_VALUE,
} from './format.ts';
import type { FigureUnit, FormulaTerms, RunFigure } from './run-figure.ts';
import { RUN_FIGURES, type FigureName } from './run-figures.ts';

const FORMATS: Readonly<Record<FigureUnit, (value: number) => string>> = {
  percent: formatPercent,
  ratio: formatRatio,
  money: formatMoney,
  count: formatCount,
  days(value) {
    const days = Math.round(value * 10) / 10;
    return Number.isInteger(days) ? formatCountOf(days, 'day') : `${formatNumber(days)} days`;
  },
};

/** A figure of `summary.json` or of some of its blocks; `null` if it is undefined or missing. */
export function readFigure(summary: object, name: FigureName): number | null {
  let value: unknown = summary;
  for (const part of RUN_FIGURES[name].path.split('.')) {
    value = (value as Readonly<Record<string, unknown>> | null | undefined)?.[part];
  }
  return typeof value === 'number' ? value : null;
}

/** Returns a dash for an undefined figure. */
export function formatFigure(name: FigureName, value: number | null): string {
  return value === null ? NO_VALUE : FORMATS[RUN_FIGURES[name].unit](value);
}

/** What a figure is computed from, in words. */
export function formulaOf(name: FigureName, terms: FormulaTerms): string {
  const { formula }: RunFigure = RUN_FIGURES[name];
  return typeof formula === 'string' ? formula : formula(terms);
}
