import * as api from '../api/paper.ts';
import { getBotId } from '../fleet/registry/bots.ts';
import { ServiceError } from '../base/errors.ts';
import { startPaper, stopPaper } from '../fleet/tasks/paper.ts';
import { getTask, type TaskService } from '../fleet/tasks/tasks.ts';
import { actorOf } from './authentication.ts';
import { createOnce } from './idempotency.ts';
import type { App, Services } from './services.ts';
import { serializeNamedTask } from './tasks.ts';

export function addPaper(app: App, { tasks }: Services): void {
  const { read } = tasks.storage;

  app.openapi(api.startPaper, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const start = (service: TaskService) =>
      startPaper(service, actorOf(c), bot_ref, c.req.valid('json'));
    const task = await createOnce(c, tasks, start, (started) => started);
    tasks.wake();
    c.header('Location', `/tasks/${task.task_id}`);
    return c.json(task, 202);
  });
  app.openapi(api.stopPaper, async (c) => {
    const { bot_ref, task_id } = c.req.valid('param');
    const [bot_id, task] = await Promise.all([getBotId(read, bot_ref), getTask(read, task_id)]);
    if (task.bot_id !== bot_id) {
      throw new ServiceError('not_found', `the task ${task_id} is none of the bot ${bot_ref}`, {
        remedy: `See \`service-local bots paper status ${bot_ref}\`.`,
      });
    }
    const stopped = await stopPaper(tasks, actorOf(c), task_id);
    tasks.wake();
    return c.json(await serializeNamedTask(tasks.storage.read, stopped), 200);
  });
}
