import { html } from 'hono/html';
import { NO_VALUE } from '../../base/format.ts';
import { figures, numberOr, percentOr, ratioOr } from './bot-parts.ts';
import type { Html } from './html.ts';
import { badge, table } from './parts.ts';

/** What is shown of a `summary.json`. */
interface Shown {
  readonly window?: { readonly from?: string; readonly to?: string; readonly bars?: number };
  readonly equity?: Part;
  readonly returns?: Part;
  readonly risk?: Part;
  readonly trades?: Part;
  readonly gates?: readonly Gate[];
  readonly findings?: readonly Finding[];
}

type Part = Readonly<Record<string, unknown>>;

interface Gate {
  readonly name: string;
  readonly op: string;
  readonly threshold: number;
  readonly value: number | null;
  readonly pass: boolean;
}

interface Finding {
  readonly severity: 'info' | 'warning' | 'critical';
  readonly issue: string;
  readonly remedy: string;
}

/** The figures, gates and findings of a result. */
export function resultFigures(summary: Readonly<Record<string, unknown>>): Html {
  const { window, equity, returns, risk, trades, gates = [], findings = [] } = summary as Shown;
  return html`<section aria-labelledby="result">
    <h2 id="result">Result</h2>
    ${figures(
      ['Return', percentOr(returns?.['total'])],
      ['Per year', percentOr(returns?.['cagr'])],
      ['Sharpe', ratioOr(risk?.['sharpe'])],
      ['Sortino', ratioOr(risk?.['sortino'])],
      ['Deepest drawdown', percentOr(risk?.['max_drawdown'])],
      ['Volatility', percentOr(risk?.['volatility'])],
      ['Trades', numberOr(trades?.['count'])],
      ['Won', percentOr(trades?.['win_rate'])],
      ['Equity at the end', numberOr(equity?.['end'])],
    )}
    ${window && html`<p class="note">${day(window.from)} to ${day(window.to)}, ${numberOr(window.bars)} bars.</p>`}
    ${
      gates.length > 0 &&
      table<Gate>(
        'Gates',
        [
          { title: 'Gate', isHeader: true, cell: ({ name }) => name },
          { title: 'Wanted', cell: ({ op, threshold }) => `${op} ${threshold}` },
          {
            title: 'Value',
            isNumber: true,
            cell: ({ value }) => (value === null ? NO_VALUE : numberOr(value)),
          },
          {
            title: 'Met',
            cell: ({ pass }) => (pass ? badge('good', 'met') : badge('bad', 'not met')),
          },
        ],
        gates,
      )
    }
    ${
      findings.length > 0 &&
      html`<ul class="findings">
        ${findings.map(
          ({ severity, issue, remedy }) =>
            html`<li>
              ${badge(severity === 'critical' ? 'bad' : severity === 'warning' ? 'warning' : 'neutral', severity)}
              ${issue} <span class="note">${remedy}</span>
            </li>`,
        )}
      </ul>`
    }
  </section>`;
}

/** Opening instant of a bar: of a day, its date. */
function day(instant = ''): string {
  const [date = '', time = ''] = instant.replace(/(\.\d+)?Z$/, '').split('T');
  return time === '00:00:00' ? date : `${date} ${time}`;
}
