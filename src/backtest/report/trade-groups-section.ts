import { formatCount, formatMoney, formatPercent, formatSpan } from '../../base/format.ts';
import { html, type Html, nothing } from '../../base/html.ts';
import type { Trade } from '../../engine/round-trip.ts';
import { calendarOf } from '../../market/trading-calendar.ts';
import { EXIT_REASONS } from './exit-reasons.ts';
import { excursionOf, type Excursion } from './excursions.ts';
import type { ReportInput } from './input.ts';
import { localTimes } from './local-time.ts';
import { svgChart, tickPercent, valueAxis } from './svg-chart.ts';
import { groupTrades, type TradeGroup } from './trade-groups.ts';

const WEEKDAYS = ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'];
const HOURS = Array.from({ length: 24 }, (_, hour) => `${String(hour).padStart(2, '0')}:00`);
const MAX_GROUPS = 50;

/** Tables of closed trades by group, and charts of their excursions. */
export function tradeGroupsSection(input: ReportInput, dateOnly: boolean): Html {
  const { result, exitReasons, currency } = input;
  const { trades } = result;
  if (trades.length === 0) return nothing;
  const reasonOf = ({ id }: Trade): string | undefined => {
    const reason = exitReasons?.get(id);
    return reason && EXIT_REASONS[reason];
  };
  // A daily bar begins at midnight UTC of its date at the exchange.
  const zone = dateOnly ? undefined : calendarOf(input.calendar)?.timeZone;
  const localTime = localTimes(zone ?? 'UTC');
  const weekdayOf = (trade: Trade): string => localTime(trade.entry_time).weekday;
  const hourOf = (trade: Trade): string => localTime(trade.entry_time).hour;
  const where = zone?.replaceAll('_', ' ') ?? 'UTC';
  const tables = [
    groupTable('Exit reason', groupTrades(trades, reasonOf)),
    groupTable(
      'Symbol',
      groupTrades(trades, ({ symbol }) => symbol),
    ),
    groupTable(
      'Side',
      groupTrades(trades, ({ side }) => side, ['long', 'short']),
    ),
    groupTable(`Weekday of entry, ${where}`, groupTrades(trades, weekdayOf, WEEKDAYS)),
    dateOnly ? nothing : groupTable(`Hour of entry, ${where}`, groupTrades(trades, hourOf, HOURS)),
  ];
  return html`<section aria-labelledby="trade-groups">
    <h2 id="trade-groups">Trades by group</h2>
    <p class="note">
      Closed trades only. Profit is net of fees, in <bdi>${currency}</bdi>; the average is that of
      profit ÷ entry value. ${holdingTimes(trades)}
    </p>
    <div class="groups">${tables}</div>
    ${excursionCharts(input)}
  </section>`;
}

/** Mean time from entry to exit of trades with a profit and of the others. */
function holdingTimes(trades: readonly Trade[]): string {
  const { winners = [], losers = [] } = Object.groupBy(trades, ({ pnl }) =>
    pnl > 0 ? 'winners' : 'losers',
  );
  const mean = (group: readonly Trade[]): string =>
    group.length === 0
      ? 'none'
      : formatSpan(
          group.reduce((sum, trade) => sum + trade.exit_time - trade.entry_time, 0) / group.length,
        );
  return `Mean holding time: winners ${mean(winners)}, losers ${mean(losers)}.`;
}

function groupTable(title: string, groups: readonly TradeGroup[]): Html {
  if (groups.length === 0) return nothing;
  const listed = groups.slice(0, MAX_GROUPS);
  const colored = (value: number, text: string): Html =>
    html`<span class="${value < 0 ? 'loss' : 'gain'}">${text}</span>`;
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Trades by ${title}">
    <table class="plain nowrap">
      <thead>
        <tr>
          <th scope="col">${title}</th>
          <th scope="col" class="number">Trades</th>
          <th scope="col" class="number">Won</th>
          <th scope="col" class="number">Profit</th>
          <th scope="col" class="number">Average</th>
        </tr>
      </thead>
      <tbody>
        ${listed.map(
          ({ name, count, winRate, pnl, averageReturn }) =>
            html`<tr>
              <th scope="row"><bdi>${name}</bdi></th>
              <td class="number">${formatCount(count)}</td>
              <td class="number">${formatPercent(winRate)}</td>
              <td class="number">${colored(pnl, formatMoney(pnl))}</td>
              <td class="number">${colored(averageReturn, formatPercent(averageReturn))}</td>
            </tr>`,
        )}
      </tbody>
    </table>
    ${
      listed.length < groups.length
        ? html`<p class="note">${listed.length} of ${formatCount(groups.length)} are listed.</p>`
        : nothing
    }
  </div>`;
}

function excursionCharts({ result, instruments }: ReportInput): Html {
  const barsOf = new Map(instruments.map(({ symbol, bars }) => [symbol, bars]));
  const points = result.trades.flatMap((trade) => {
    const bars = barsOf.get(trade.symbol);
    return bars === undefined ? [] : { trade, excursion: excursionOf(trade, bars) };
  });
  if (points.length < 2) return nothing;
  const chart = (id: string, title: string, kind: keyof Excursion, caption: string): Html => {
    const all = points.map(({ trade, excursion }) => [excursion[kind], trade.return] as const);
    const dots = (className: 'gain' | 'loss') =>
      ({
        kind: 'dots',
        className,
        points: all.filter(([, value]) => value > 0 === (className === 'gain')),
      }) as const;
    return svgChart({
      id,
      title,
      caption,
      x: valueAxis(
        all.map(([x]) => x),
        tickPercent,
      ),
      y: valueAxis(
        all.map(([, y]) => y),
        tickPercent,
      ),
      marks: [dots('loss'), dots('gain')],
    });
  };
  const average = (kind: keyof Excursion): string =>
    formatPercent(points.reduce((sum, { excursion }) => sum + excursion[kind], 0) / points.length);
  return html`<div class="smalls">
      ${chart('mae', 'Adverse excursion (MAE) and return', 'adverse', `Horizontal: how far the price moved against each trade. Vertical: its return. Mean MAE ${average('adverse')}.`)}
      ${chart('mfe', 'Favorable excursion (MFE) and return', 'favorable', `Horizontal: how far the price moved in favor of each trade. Vertical: its return. Mean MFE ${average('favorable')}.`)}
    </div>
    <p class="note">
      Excursions are shares of the mean entry price, before fees, over the highs and lows of the
      bars from the entry to the one before the exit, and the exit price.
    </p>`;
}
