import { formatCountOf, formatInstant } from '../../base/format.ts';
import { html } from '../../base/html.ts';
import { switchTheme } from '../report/client/switch-theme.ts';
import { renderPage, THEME_BUTTON } from '../report/render-report.ts';
import { drawComparison } from './client/comparison-chart.ts';
import type { ForkComparison } from './compare-fork.ts';
import { chartData, curvesSection, figuresSection, groupFigures } from './render-comparison.ts';

export interface ForkPage extends ForkComparison {
  readonly bot: string;
  readonly run_id: string;
  readonly at_seq: number;
  /** Time of the last bars before the change, RFC 3339. */
  readonly time: string;
  /** Number of bar steps after the change. */
  readonly steps: { readonly after: number };
  /** Order events after the change. */
  readonly events: { readonly session: number; readonly fork: number };
  /** Changed parameters, such as `fast: 10 in the session, 20 in the fork`. */
  readonly changes: readonly string[];
  /** Sentences about what limits the comparison. */
  readonly notes: readonly string[];
}

/** Names of the two runs, in the order of their values. */
const FORK_LABELS = ['session', 'fork'] as const;

/** Renders a fork as a self-contained HTML page. */
export function renderFork(fork: ForkPage): string {
  const { bot, run_id, at_seq, time, steps, events, changes, notes, figures, after, curves } = fork;
  const changedAt = Date.parse(time);
  const runs = FORK_LABELS.map((label) => ({ label }));
  const data = {
    ...chartData(runs, curves),
    arrowAt: curves.time.findLast((seconds) => seconds * 1000 <= changedAt),
  };
  const whole = groupFigures(figures).map(
    ([title, own]) => [`Whole session: ${title.toLowerCase()}`, own] as const,
  );
  return renderPage({
    title: `${bot} · fork`,
    body: html`<main>
      <header>
        <div class="topline">
          <p>Fork of session ${run_id}</p>
          ${THEME_BUTTON}
        </div>
        <h1><bdi>${bot}</bdi></h1>
      </header>
      <section aria-labelledby="changes">
        <h2 id="changes">
          Changed after event ${at_seq}, ${formatInstant(changedAt, data.dateOnly)}
        </h2>
        <ul class="causes">
          ${changes.map((change) => html`<li><bdi>${change}</bdi></li>`)}
        </ul>
        <p class="note">
          The arrow in the chart marks the last bar before the change. It is followed by
          ${formatCountOf(steps.after, 'bar')}, with ${formatCountOf(events.session, 'order event')}
          in the session and ${formatCountOf(events.fork, 'order event')} in the fork.
        </p>
        ${notes.map((note) => html`<p class="judgement">${note}</p>`)}
      </section>
      ${curvesSection(runs, curves, 'the start of the session')}
      ${figuresSection(runs, [['After the change', after], ...whole])}
    </main>`,
    data,
    scripts: [switchTheme, drawComparison],
    charts: true,
  });
}
