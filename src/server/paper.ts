import * as api from '../api/paper.ts';
import { startPaper, stopPaper } from '../fleet/tasks/paper.ts';
import type { TaskService } from '../fleet/tasks/tasks.ts';
import { actorOf } from './authentication.ts';
import type { App, Services } from './services.ts';
import { requireTaskOfBot, startOnce, serializeNamedTask } from './tasks.ts';

export function addPaper(app: App, { tasks }: Services): void {
  const { read } = tasks.storage;

  app.openapi(api.startPaper, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const start = (service: TaskService) =>
      startPaper(service, actorOf(c), bot_ref, c.req.valid('json'));
    return c.json(await startOnce(c, tasks.wake, tasks, start), 202);
  });
  app.openapi(api.stopPaper, async (c) => {
    const { bot_ref, task_id } = c.req.valid('param');
    await requireTaskOfBot(read, bot_ref, task_id, `service-local bots paper status ${bot_ref}`);
    const stopped = await stopPaper(tasks, actorOf(c), task_id);
    tasks.wake();
    return c.json(await serializeNamedTask(read, stopped), 200);
  });
}
