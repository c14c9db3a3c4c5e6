import { formatProblem } from '../../../base/format-problem.ts';
import { errorFromProblem } from '../../../client/problem.ts';
import { connect } from '../../connect.ts';
import { showItems } from '../../show-items.ts';
import { formatEndingHalt, findTask, TASK_ARGUMENT, TASK_COLUMNS } from '../../tasks.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'show a task',
  arguments: { task: TASK_ARGUMENT },
  settings: ['server_url'],
  examples: ['tasks get 0198c0de-0000-7000-8000-00000000dddd'],
  async run(context, { task: task_id }) {
    const task = await findTask(await connect(context), task_id);
    return {
      data: task,
      show(out) {
        const { ended_by_halt: halt } = task;
        showItems(out, [{ ...task, halted: halt !== null }], TASK_COLUMNS);
        if (halt !== null) out.line(formatEndingHalt(halt));
        if (task.error === null) return;
        out.line();
        const { code, message, problems, remedy } = errorFromProblem(task.error);
        out.line(`${code}: ${message}`);
        for (const problem of problems) out.line(`  ${formatProblem(problem)}`);
        if (remedy !== undefined) out.line(remedy);
      },
    };
  },
});
