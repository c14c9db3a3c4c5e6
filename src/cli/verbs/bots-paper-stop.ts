import type { stopPaper } from '../../api/paper.ts';
import { connect } from '../connect.ts';
import { findTask, TASK_ARGUMENT } from '../tasks.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description:
    'Cancels the working orders of the session, and has its result be that of the bars it has seen, within seconds. What has ended stays as it ended.',
  arguments: { task: TASK_ARGUMENT },
  settings: ['server_url'],
  examples: ['bots paper stop 0198c0de-0000-7000-8000-00000000dddd'],
  async run(context, { task: task_id }) {
    const server = await connect(context);
    const { bot_id: bot_ref } = await findTask(server, task_id);
    const path = '/bots/{bot_ref}/paper/stop/{task_id}';
    const task = await server.call<typeof stopPaper>('post', path, {
      params: { bot_ref, task_id },
    });
    return {
      data: task,
      show(out) {
        if (task.ended_at !== null) return out.line(`task ${task_id} is ${task.status}`);
        out.line(`task ${task_id} is told to stop`);
        out.line(`See \`service-local tasks result ${task_id} --wait\`.`);
      },
    };
  },
});
