import { DAY } from '../../base/durations.ts';
import { formatFigure } from '../../base/format-figure.ts';
import { formatInstant, formatPercent } from '../../base/format.ts';
import { html, type Html, nothing } from '../../base/html.ts';
import { worstDrawdowns } from './drawdowns.ts';
import type { ReportInput } from './input.ts';

const LISTED = 5;

export function drawdownsSection(
  { result, drawdown }: Pick<ReportInput, 'result' | 'drawdown'>,
  dateOnly: boolean,
): Html {
  const { time } = result;
  const periods = worstDrawdowns(time, drawdown, LISTED);
  if (periods.length === 0) return nothing;
  const instant = (ms: number): string => formatInstant(ms, dateOnly);
  const days = (from: number, to: number): string =>
    formatFigure('max_drawdown_days', (to - from) / DAY);
  return html`<section aria-labelledby="drawdowns">
    <h2 id="drawdowns">Worst drawdowns</h2>
    <div class="scroll" tabindex="0" role="group" aria-labelledby="drawdowns">
      <table class="plain nowrap">
        <thead>
          <tr>
            <th scope="col">Peak</th>
            <th scope="col">Trough</th>
            <th scope="col">Recovery</th>
            <th scope="col" class="number">Depth</th>
            <th scope="col" class="number">Peak to trough</th>
            <th scope="col" class="number">Total length</th>
          </tr>
        </thead>
        <tbody>
          ${periods.map(
            ({ start, trough, recovery, depth }) =>
              html`<tr>
                <td>${instant(start)}</td>
                <td>${instant(trough)}</td>
                <td>${recovery === undefined ? 'not recovered' : instant(recovery)}</td>
                <td class="number loss">${formatPercent(depth)}</td>
                <td class="number">${days(start, trough)}</td>
                <td class="number">${days(start, recovery ?? time.at(-1)!)}</td>
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    <p class="note">
      The deepest falls below a former peak, measured at the closes of bars. Lengths are calendar
      days.
    </p>
  </section>`;
}
