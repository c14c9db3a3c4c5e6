import type { startBacktest } from '../../../api/tasks.ts';
import { BOT_ARGUMENT } from '../../bots.ts';
import { RUN_OPTIONS } from '../../run-options.ts';
import { resultAnswer, startedAnswer, waitForTask } from '../../tasks.ts';
import { defineServerVerb } from '../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'backtest a bot on the server, with data from its catalogue',
  description:
    'Waits for the result and prints it as `backtest` does. Ctrl-C stops only the waiting; the task continues.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    ...RUN_OPTIONS,
    verifyLock: {
      description:
        'fail if anything differs from the first successful backtest of the version with these options',
    },
    openHoldout: { description: 'also run over the holdout, and record this in the trial ledger' },
  },
  examples: [
    'bots backtest sma-crossover',
    'bots backtest sma-crossover --version 2 -p fast=20 --json | jq .risk.sharpe',
    'bots backtest sma-crossover --version 1 --verify-lock',
    'bots backtest sma-crossover --detach --json | jq -r .task_id',
  ],
  async run(
    server,
    { bot: bot_ref },
    { version, param, from, to, verifyLock, openHoldout, detach },
    context,
  ) {
    const task = await server.call<typeof startBacktest>('post', '/bots/{bot_ref}/backtest', {
      params: { bot_ref },
      body: {
        version,
        from,
        to,
        params: Object.fromEntries(param),
        ...(verifyLock && { verify_lock: true }),
        ...(openHoldout && { open_holdout: true }),
      },
    });
    if (detach) return startedAnswer(task);
    const { task_id } = task;
    await waitForTask(context, task_id);
    const answer = await resultAnswer(server, task_id);
    if (verifyLock) {
      context.message(
        'the run matches the lock: code, data and engine are those of the first backtest of the version with these options',
      );
    }
    return answer;
  },
});
