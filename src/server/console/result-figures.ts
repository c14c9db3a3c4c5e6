import { html } from 'hono/html';
import { NO_VALUE } from '../../base/format.ts';
import { formatFigure, readFigure } from '../../base/format-figure.ts';
import { RUN_FIGURES, type FigureName } from '../../base/run-figures.ts';
import { figures, formatOptional } from './bot-parts.ts';
import type { Html } from './html.ts';
import { badge, table } from './parts.ts';

/** The fields of `summary.json` that are displayed beside the figures. */
interface Summary {
  readonly unsaved_bundle?: string | null;
  readonly window?: { readonly from?: string; readonly to?: string; readonly bars?: number };
  readonly gates?: readonly Gate[];
  readonly findings?: readonly Finding[];
}

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

const FIGURES = [
  'total_return',
  'cagr',
  'sharpe',
  'sortino',
  'max_drawdown',
  'volatility',
  'trades',
  'win_rate',
  'end_equity',
] as const satisfies readonly FigureName[];

export function resultFigures(summary: Readonly<Record<string, unknown>>): Html {
  const { unsaved_bundle, window, gates = [], findings = [] } = summary as Summary;
  return html`<section aria-labelledby="result">
    <h2 id="result">Result</h2>
    ${figures(...FIGURES.map((name) => [RUN_FIGURES[name].label, formatFigure(name, readFigure(summary, name))] as const))}
    ${unsaved_bundle !== undefined && html`<p class="note">This run used ${unsaved_bundle === null ? 'none of' : html`unsaved code, <code>${unsaved_bundle.slice(0, 16)}…</code>, instead of`} the files of its version.</p>`}
    ${window && html`<p class="note">${barTime(window.from)} to ${barTime(window.to)}, ${formatOptional(window.bars)} bars.</p>`}
    ${
      gates.length > 0 &&
      table<Gate>(
        'Gates',
        [
          { title: 'Gate', isHeader: true, cell: ({ name }) => name },
          { title: 'Required', cell: ({ op, threshold }) => `${op} ${threshold}` },
          {
            title: 'Value',
            isNumber: true,
            cell: ({ value }) => (value === null ? NO_VALUE : formatOptional(value)),
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

/** The time of a bar; for a daily bar only its date. */
function barTime(instant = ''): string {
  const [date = '', time = ''] = instant.replace(/(\.\d+)?Z$/, '').split('T');
  return time === '00:00:00' ? date : `${date} ${time}`;
}
