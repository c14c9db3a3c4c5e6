import { listTrials } from '../api/trials.ts';
import { readTrials } from '../fleet/tasks/trial-entries.ts';
import type { App, Services } from './services.ts';

export function addTrials(app: App, { tasks }: Services): void {
  app.openapi(listTrials, async (c) => {
    const { after_seq, limit } = c.req.valid('query');
    const { entries, head } = await readTrials(tasks.storage.read, after_seq, limit + 1);
    const items = entries
      .slice(0, limit)
      .map((entry) => ({ ...entry, symbols: [...entry.symbols] }));
    const next_cursor = entries.length > limit ? String(items.at(-1)!.seq) : null;
    return c.json({ items, next_cursor, head }, 200);
  });
}
