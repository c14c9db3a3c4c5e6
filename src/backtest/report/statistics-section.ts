import { UNDEFINED_REASONS } from '../summary.ts';
import type { Summary } from '../summary.ts';
import {
  formatMoney,
  formatNumber,
  formatPercent,
  formatRatio,
  NO_VALUE,
} from '../../base/format.ts';
import { type Child, html, type Html } from './html.ts';

/** Where a summary has a statistic that may be undefined; the same name is in `undefined`. */
type StatisticPath = {
  [Block in 'returns' | 'risk' | 'trades' | 'costs']: `${Block}.${keyof Summary[Block] & string}`;
}['returns' | 'risk' | 'trades' | 'costs'];

/** A statistic, or a dash that says on hover and on focus why there is none. */
export function showStatistic(
  summary: Summary,
  path: StatisticPath,
  format: (figure: number) => string,
): Child {
  const [block, name] = path.split('.') as ['returns' | 'risk' | 'trades' | 'costs', string];
  const figure = (summary[block] as Readonly<Record<string, number | null>>)[name]!;
  if (figure !== null) return format(figure);
  const reason = summary.undefined[path];
  if (reason === undefined) return NO_VALUE;
  return html`<span class="undefined" tabindex="0"
    >—<span role="note"> Undefined: ${UNDEFINED_REASONS[reason]}.</span></span
  >`;
}

type Row = readonly [name: string, shown: Child, how: string];

/** Every statistic beside the formula that its conventions make of it. */
export function statisticsSection(summary: Summary, currency: string): Html {
  const { conventions, equity, exposure } = summary;
  const { year_days: yearDays, ddof, risk_free: riskFree, sampling } = conventions;
  const percent = (path: StatisticPath): Child => showStatistic(summary, path, formatPercent);
  const ratio = (path: StatisticPath): Child => showStatistic(summary, path, formatRatio);
  const money = (path: StatisticPath): Child => showStatistic(summary, path, formatMoney);
  const count = (path: StatisticPath): Child => showStatistic(summary, path, formatNumber);

  const perYear = formatNumber(conventions.periods_per_year);
  const sample = sampling === 'day' ? 'UTC day' : sampling;
  const deviation = `standard deviation (ddof ${ddof})`;
  const excess = riskFree === 0 ? 'mean return' : 'mean return above the risk-free rate';
  const days = formatNumber(Math.round(summary.risk.max_drawdown_days * 10) / 10);

  const groups: Readonly<Record<string, readonly Row[]>> = {
    Equity: [
      ['Start', formatMoney(equity.start), `cash at the start, ${currency}`],
      ['End', formatMoney(equity.end), 'cash and positions at the last close'],
      ['Peak', formatMoney(equity.peak), 'highest close'],
    ],
    Return: [
      ['Total', percent('returns.total'), 'end ÷ start − 1'],
      ['CAGR', percent('returns.cagr'), `(1 + total)^(${yearDays} ÷ calendar days) − 1`],
      [
        'Annual return',
        percent('returns.annual'),
        `(last ÷ first sample)^(${perYear} ÷ number of returns) − 1`,
      ],
      [`Best ${sample}`, percent('returns.best_day'), 'largest return'],
      [`Worst ${sample}`, percent('returns.worst_day'), 'smallest return'],
    ],
    Risk: [
      ['Volatility', percent('risk.volatility'), `${deviation} of returns × √${perYear}`],
      ['Sharpe', ratio('risk.sharpe'), `${excess} ÷ ${deviation} × √${perYear}`],
      [
        'Sortino',
        ratio('risk.sortino'),
        `${excess} ÷ root mean square of the shortfalls, over all returns, × √${perYear}`,
      ],
      ['Calmar', ratio('risk.calmar'), 'CAGR ÷ |max drawdown|'],
      [
        'Max drawdown',
        percent('risk.max_drawdown'),
        'lowest equity ÷ highest before it − 1, at every close',
      ],
      [
        'Longest drawdown',
        `${days} ${days === '1' ? 'day' : 'days'}`,
        'calendar days below a former peak',
      ],
      ['VaR 95%', percent('risk.var_95'), `5th percentile of returns per ${sample}`],
      ['CVaR 95%', percent('risk.cvar_95'), 'mean of the returns up to VaR'],
    ],
    Trades: [
      ['Closed', count('trades.count'), 'from flat to flat in one instrument'],
      ['Open at the end', count('trades.open'), 'not part of the figures below'],
      ['Win rate', percent('trades.win_rate'), 'share with a net profit'],
      ['Profit factor', ratio('trades.profit_factor'), 'sum of profits ÷ sum of losses'],
      ['Expectancy', money('trades.expectancy'), `mean profit, ${currency}`],
      ['Average trade', percent('trades.average'), 'mean of profit ÷ entry value'],
      ['Best trade', percent('trades.best'), 'profit ÷ entry value'],
      ['Worst trade', percent('trades.worst'), 'profit ÷ entry value'],
      ['SQN', ratio('trades.sqn'), '√count × mean ÷ standard deviation of profits'],
      ['Kelly', percent('trades.kelly'), 'win rate − loss rate ÷ (mean profit ÷ mean loss)'],
    ],
    Costs: [
      ['Fees', money('costs.fees'), `over all fills, ${currency}`],
      ['Slippage', money('costs.slippage'), `fill price against reference price, ${currency}`],
      ['Turnover', ratio('costs.turnover'), 'traded value per year ÷ mean equity'],
      ['Time in the market', formatPercent(exposure.time), 'share of closes with a position'],
    ],
  };
  return html`<section aria-labelledby="statistics">
    <h2 id="statistics">Statistics and how they are computed</h2>
    <table class="plain stack">
      <thead>
        <tr>
          <th scope="col">Statistic</th>
          <th scope="col" class="number">Value</th>
          <th scope="col">Computed as</th>
        </tr>
      </thead>
      ${Object.entries(groups).map(
        ([name, rows]) =>
          html`<tbody>
            <tr class="group">
              <th colspan="3" scope="rowgroup">${name}</th>
            </tr>
            ${rows.map(
              ([label, shown, how]) =>
                html`<tr>
                  <th scope="row">${label}</th>
                  <td class="number">${shown}</td>
                  <td class="how">${how}</td>
                </tr>`,
            )}
          </tbody>`,
      )}
    </table>
    <p class="note">
      Conventions: ${perYear} periods per year; ${yearDays} days per year in CAGR; ddof ${ddof};
      risk-free rate ${formatPercent(riskFree)} a year. Returns are simple, from the last close of
      each ${sample} to the next, beginning with the starting cash. Downside deviation divides by
      the number of all returns. Trades run from flat to flat. Numbers are 64-bit floats.
    </p>
  </section>`;
}
