import type { listTasks } from '../../../api/tasks.ts';
import { connect } from '../../connect.ts';
import { showItems } from '../../show-items.ts';
import { TASK_COLUMNS, TASK_STATUSES } from '../../tasks.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'list what the server works on, or has worked on',
  description: 'The newest first.',
  options: {
    bot: { value: 'bot', description: 'only those of this bot, by id or slug' },
    status: { value: 'status', description: 'only these', choices: TASK_STATUSES },
  },
  settings: ['server_url'],
  examples: ['tasks list --status running', 'tasks list --bot sma-crossover --json'],
  async run(context, _args, query) {
    const server = await connect(context);
    const tasks = await Array.fromAsync(
      server.items<typeof listTasks>('get', '/tasks', { query: { ...query } }),
    );
    return { data: { tasks }, show: (out) => showItems(out, tasks, TASK_COLUMNS) };
  },
});
