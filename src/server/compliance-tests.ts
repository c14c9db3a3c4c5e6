import * as api from '../api/compliance-tests.ts';
import { startConformance, startStress } from '../compliance/tests/start.ts';
import type { TaskService } from '../fleet/tasks/tasks.ts';
import { actorOf } from './authentication.ts';
import { createOnce } from './idempotency.ts';
import type { App, Services } from './services.ts';
import { announceQueued } from './tasks.ts';

export function addComplianceTests(app: App, { tasks }: Services): void {
  app.openapi(api.startConformance, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const start = (service: TaskService) =>
      startConformance(service, actorOf(c), bot_ref, c.req.valid('json'));
    const task = await createOnce(c, tasks, start, (started) => started);
    announceQueued(c, tasks, task);
    return c.json(task, 202);
  });
  app.openapi(api.startStress, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const start = (service: TaskService) =>
      startStress(service, actorOf(c), bot_ref, c.req.valid('json'));
    const task = await createOnce(c, tasks, start, (started) => started);
    announceQueued(c, tasks, task);
    return c.json(task, 202);
  });
}
