/** Shared parts of the verbs that test bots. */
import type { startConformance } from '../api/compliance-tests.ts';
import type { Client } from '../client/client.ts';
import type { AnswerOf } from '../client/route.ts';
import { parseCount } from './parse-count.ts';
import { resultAnswer, waitForTask } from './tasks.ts';
import type { Answer, Context } from './verb.ts';

export const TEST_OPTIONS = {
  version: {
    value: 'n',
    description: 'version of the bot; by default the current one',
    parse: parseCount,
  },
  seed: {
    value: 'n',
    description: 'seed of all random choices; 1 by default',
    parse: parseCount,
  },
  wait: { description: 'wait for the result and show it; Ctrl-C stops only the waiting' },
} as const;

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
