import { listTrials, recordTrials } from '../api/trials.ts';
import { readTrials, recordTrials as recordReported } from '../fleet/tasks/trial-entries.ts';
import { actorOf } from './authentication.ts';
import type { App, Services } from './services.ts';

/** Maximum size of a page of packed trials, bytes. A page has at least one entry. */
const MOST_BYTES = 4_000_000;

export function addTrials(app: App, { tasks }: Services): void {
  app.openapi(listTrials, async (c) => {
    const { after_seq, limit } = c.req.valid('query');
    const { entries, head } = await readTrials(tasks.storage.read, after_seq, limit + 1);
    const items = entries
      .slice(0, Math.min(limit, countFitting(entries)))
      .map((entry) => ({ ...entry, symbols: [...entry.symbols] }));
    const next_cursor = entries.length > items.length ? String(items.at(-1)!.seq) : null;
    return c.json({ items, next_cursor, head }, 200);
  });

  app.openapi(recordTrials, async (c) => {
    const { lock, trials, from, to, ...rest } = c.req.valid('json');
    const scope = { ...rest, from: new Date(from).toISOString(), to: new Date(to).toISOString() };
    const { storage, clock } = tasks;
    await storage.write((tx) => recordReported(tx, actorOf(c), clock(), { lock, scope, trials }));
    return c.body(null, 204);
  });
}

function countFitting(
  entries: readonly { readonly kind: string; readonly trials?: string }[],
): number {
  let bytes = 0;
  const tooMany = entries.findIndex((entry, at) => {
    bytes += entry.trials?.length ?? 0;
    return at > 0 && bytes > MOST_BYTES;
  });
  return tooMany === -1 ? entries.length : tooMany;
}
