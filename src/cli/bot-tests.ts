/** What the verbs that test bots have in common. */
import type { startConformance } from '../api/compliance.ts';
import type { Client } from '../client/client.ts';
import type { AnswerOf } from '../client/route.ts';
import { parseCount } from './parse-count.ts';
import { resultAnswer, waitForTask } from './tasks.ts';
import type { Answer, Context } from './verb.ts';

export const TEST_OPTIONS = {
  version: { value: 'n', description: 'of the bot; by default the current one', parse: parseCount },
  seed: {
    value: 'n',
    description: 'decides all that is left to chance; 1 by default',
    parse: parseCount,
  },
  wait: { description: 'wait for the result, and show it; Ctrl-C leaves the task running' },
} as const;

/** Of a test that was started. */
export async function testAnswer(
  context: Context,
  server: Client,
  kind: 'conformance' | 'stress',
  task: AnswerOf<typeof startConformance>,
  wait: boolean,
): Promise<Answer> {
  const { task_id, status } = task;
  if (wait) {
    await waitForTask(context, task_id, kind);
    return resultAnswer(server, task_id);
  }
  return {
    data: task,
    show(out) {
      out.line(`task ${task_id} is ${status}`);
      out.line(`See \`service-local tasks result ${task_id} --wait\`.`);
    },
  };
}
