import type { cancelTask } from '../../../api/tasks.ts';
import { TASK_ARGUMENT } from '../../tasks.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'cancel a task',
  description:
    'Cancels a waiting task at once and a running task within seconds. A task that has ended does not change.',
  arguments: { task: TASK_ARGUMENT },
  examples: ['tasks cancel 0198c0de-0000-7000-8000-00000000dddd'],
  async run(server, { task: task_id }) {
    const path = '/tasks/{task_id}/cancel';
    const task = await server.call<typeof cancelTask>('post', path, { params: { task_id } });
    const isEnding = task.status === 'running';
    return {
      data: task,
      show: (out) =>
        out.line(`task ${task_id} ${isEnding ? 'is being canceled' : `is ${task.status}`}`),
    };
  },
});
