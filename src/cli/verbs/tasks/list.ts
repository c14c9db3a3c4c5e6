import type { listTasks } from '../../../api/tasks.ts';
import { listAnswer } from '../../list-answer.ts';
import { TASK_COLUMNS, TASK_STATUSES } from '../../tasks.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the tasks of the server',
  description: 'Lists waiting, running and ended tasks, newest first.',
  options: {
    bot: { value: 'bot', description: 'only tasks of this bot (id or slug)' },
    status: { value: 'status', description: 'only tasks in this status', choices: TASK_STATUSES },
  },
  examples: ['tasks list --status running', 'tasks list --bot sma-crossover --json'],
  run: (server, _args, query) =>
    listAnswer<typeof listTasks>(server, 'tasks', '/tasks', TASK_COLUMNS, { query: { ...query } }),
});
