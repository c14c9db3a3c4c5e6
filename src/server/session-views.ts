import { formatInstant } from '../api/http.ts';
import * as api from '../api/session-views.ts';
import { readSessionChart } from '../fleet/tasks/session-chart.ts';
import type { SessionTrade } from '../fleet/tasks/booked-trades.ts';
import { listSessionTrades, sessionTradesCsv } from '../fleet/tasks/session-trades.ts';
import { serializePage } from './serialize-page.ts';
import type { App, Services } from './services.ts';

export function addSessionViews(app: App, { identity, tasks }: Services): void {
  const registry = { ...identity, customCode: tasks.customCode };

  app.openapi(api.getSessionChart, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const { after, ...wanted } = c.req.valid('query');
    const request = { ...wanted, after: after === undefined ? undefined : Date.parse(after) };
    const { indicators, symbols, lines, ...chart } = await readSessionChart(
      registry,
      bot_ref,
      request,
    );
    return c.json(
      {
        ...chart,
        symbols: [...symbols],
        indicators: indicators.map(({ lines: drawn, ...one }) => ({
          ...one,
          lines: drawn.map(({ isFilled: is_filled, ...line }) => ({ ...line, is_filled })),
        })),
        lines: lines.map((line) => [...line]),
      } as api.SessionChart,
      200,
    );
  });
  app.openapi(api.listSessionTrades, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const { limit, cursor, format, ...filter } = c.req.valid('query');
    if (format === 'csv') {
      c.header('Content-Disposition', 'attachment; filename="trades.csv"');
      const text = await sessionTradesCsv(tasks, bot_ref, filter);
      return c.body(text, 200, { 'Content-Type': 'text/csv; charset=utf-8' });
    }
    const { run_id, count, pnl, ...found } = await listSessionTrades(tasks, bot_ref, filter, {
      limit,
      cursor,
    });
    return c.json({ ...serializePage(found, serializeTrade), run_id, count, pnl }, 200);
  });
}

function serializeTrade({ entry_time, exit_time, ...trade }: SessionTrade): api.SessionTrade {
  return {
    ...trade,
    entry_time: formatInstant(entry_time),
    exit_time: formatInstant(exit_time),
  };
}
