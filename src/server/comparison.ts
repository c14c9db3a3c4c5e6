import * as api from '../api/comparison.ts';
import { compareTasks } from '../fleet/comparisons/compare-tasks.ts';
import type { App, Services } from './services.ts';

/** Register it before `/tasks/{task_id}`, which matches the same path. */
export function addComparison(app: App, { tasks }: Services): void {
  app.openapi(api.compareTasks, async (c) => {
    const { ids, format } = c.req.valid('query');
    const { comparison, page } = await compareTasks(tasks.storage.read, ids.split(','));
    return format === 'json' ? c.json({ ...comparison }, 200) : c.html(page, 200);
  });
}
