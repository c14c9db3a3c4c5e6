import type { startConformance } from '../api/compliance-tests.ts';
import type { Client } from '../client/client.ts';
import type { AnswerOf } from '../client/route.ts';
import { parseCount } from './parse-count.ts';
import { RUN_OPTIONS } from './run-options.ts';
import { resultAnswer, startedAnswer, waitForTask } from './tasks.ts';
import type { Answer, Context } from './verb.ts';

export const TEST_OPTIONS = {
  version: RUN_OPTIONS.version,
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
  if (!wait) return startedAnswer(task);
  await waitForTask(context, task.task_id, kind);
  return resultAnswer(server, task.task_id);
}
