import { listTrials, recordTrials } from '../api/trials.ts';
import { readTrials, recordTrials as recordReported } from '../fleet/tasks/trial-entries.ts';
import { actorOf } from './authentication.ts';
import type { App, Services } from './services.ts';

/** Maximum size of a page of packed trials, bytes. A page has at least one entry. */
const MOST_BYTES = 4_000_000;

export function addTrials(app: App, { tasks }: Services): void {
  app.openapi(listTrials, async (c) => {
    const { after_seq, limit } = c.req.valid('query');
    const most = { count: limit, bytes: MOST_BYTES };
    const { entries, hasMore, head } = await readTrials(tasks.storage.read, after_seq, most);
    const items = entries.map((entry) => ({ ...entry, symbols: [...entry.symbols] }));
    const next_cursor = hasMore ? String(items.at(-1)!.seq) : null;
    return c.json({ items, next_cursor, head }, 200);
  });

  app.openapi(recordTrials, async (c) => {
    const { lock, trials, from, to, ...rest } = c.req.valid('json');
    const scope = { ...rest, from: new Date(from).toISOString(), to: new Date(to).toISOString() };
    await recordReported(tasks, actorOf(c), { lock, scope, trials });
    return c.body(null, 204);
  });
}
