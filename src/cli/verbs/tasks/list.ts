import type { listTasks } from '../../../api/tasks.ts';
import { listAnswer } from '../../list-answer.ts';
import { LISTED_STATUSES } from '../../../base/task-statuses.ts';
import { TASK_COLUMNS, TASK_ORDERS } from '../../tasks.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the tasks of the server',
  description:
    'Lists waiting, running and ended tasks, newest first by default. A session that a halt ended is shown as halted; --status canceled includes it, and --status halted shows only such sessions.',
  options: {
    bot: { value: 'bot', description: 'only tasks of this bot (id or slug)' },
    status: { value: 'status', description: 'only tasks in this status', choices: LISTED_STATUSES },
    kind: { value: 'kinds', description: 'only tasks of these kinds, such as backtest,paper' },
    since: { value: 'time', description: 'only tasks queued at this UTC time or later' },
    until: { value: 'time', description: 'only tasks queued before this UTC time' },
    sort: {
      value: 'order',
      description: 'order of the list; by a figure, the best run comes first',
      choices: TASK_ORDERS,
      default: 'newest',
    },
  },
  examples: [
    'tasks list --status running',
    'tasks list --bot sma-crossover --kind backtest --sort sharpe',
  ],
  run: (server, _args, query) =>
    listAnswer<typeof listTasks>(server, 'tasks', '/tasks', TASK_COLUMNS, { query: { ...query } }),
});
