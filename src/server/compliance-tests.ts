import * as api from '../api/compliance-tests.ts';
import { startConformance, startStress } from '../compliance/tests/start.ts';
import type { TaskService } from '../fleet/tasks/tasks.ts';
import { actorOf } from './authentication.ts';
import type { App, Services } from './services.ts';
import { startOnce } from './tasks.ts';

export function addComplianceTests(app: App, { tasks }: Services): void {
  app.openapi(api.startConformance, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const start = (service: TaskService) =>
      startConformance(service, actorOf(c), bot_ref, c.req.valid('json'));
    return c.json(await startOnce(c, tasks.wake, tasks, start), 202);
  });
  app.openapi(api.startStress, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const start = (service: TaskService) =>
      startStress(service, actorOf(c), bot_ref, c.req.valid('json'));
    return c.json(await startOnce(c, tasks.wake, tasks, start), 202);
  });
}
