import * as api from '../api/analyses.ts';
import { startAnalysis } from '../fleet/analyses/start-analysis.ts';
import type { TaskService } from '../fleet/tasks/tasks.ts';
import { actorOf } from './authentication.ts';
import type { App, Services } from './services.ts';
import { startOnce } from './tasks.ts';

export function addAnalyses(app: App, { tasks }: Services): void {
  app.openapi(api.startAnalysis, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const start = (service: TaskService) =>
      startAnalysis(service, actorOf(c), bot_ref, c.req.valid('json'));
    return c.json(await startOnce(c, tasks.wake, tasks, start), 202);
  });
}
