import { join, resolve } from 'node:path';
import type { getTaskFile, listTaskFiles } from '../../../api/tasks.ts';
import { connect } from '../../connect.ts';
import { resultAnswer, TASK_ARGUMENT, waitForTask } from '../../tasks.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'show the result of a task, or wait for it',
  description:
    'Shows the result of a backtest as `backtest` does, or the result of a conformance or stress test. The exit code is 5 if a gate is not met, a case failed or is inconclusive, or a stress test failed or is provisional. It is 8 if a stress test is inconclusive because the host was too busy.',
  arguments: { task: TASK_ARGUMENT },
  options: {
    wait: { description: 'wait for the result; Ctrl-C leaves the task running' },
    out: {
      value: 'dir',
      description: 'write the result files to this directory',
      complete: 'directory',
    },
  },
  settings: ['server_url'],
  examples: [
    'tasks result 0198c0de-0000-7000-8000-00000000dddd --wait',
    'tasks result 0198c0de-0000-7000-8000-00000000dddd --out ./result',
  ],
  async run(context, { task: task_id }, { wait, out: given }) {
    if (wait) await waitForTask(context, task_id);
    const server = await connect(context);
    const answer = await resultAnswer(server, task_id);
    if (given === undefined) return answer;
    const { prepareDirectory } = await import('../../../backtest/run-files.ts');
    const { notWritable } = await import('../../../backtest/write-text.ts');
    const { writeAtomically } = await import('../../../base/atomic-file.ts');
    const { isSystemError } = await import('../../../base/system-errors.ts');
    const directory = resolve(context.cwd, given);
    await prepareDirectory(directory);
    const { files } = await server.call<typeof listTaskFiles>('get', '/tasks/{task_id}/files', {
      params: { task_id },
    });
    for (const name of files) {
      const params = { task_id, name };
      const file = server.file<typeof getTaskFile>('/tasks/{task_id}/files/{name}', { params });
      try {
        await writeAtomically(join(directory, name), file);
      } catch (error) {
        throw isSystemError(error) ? notWritable(join(directory, name), error) : error;
      }
    }
    context.message(`${files.join(', ')} are in ${directory}`);
    return answer;
  },
});
