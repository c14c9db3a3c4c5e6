import type { stopPaper } from '../../../../api/paper.ts';
import type { Client } from '../../../../client/client.ts';
import { ServiceError } from '../../../../base/errors.ts';
import { formatCountOf } from '../../../../base/format.ts';
import { findBot } from '../../../bots.ts';
import { findOptional } from '../../../find-optional.ts';
import { findTask, stopAnswer } from '../../../tasks.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'stop a paper session and keep its result',
  description:
    'Cancels the working orders of the session. Its result, available within seconds, covers the bars so far. If the session has already ended, nothing changes.',
  arguments: {
    session: { description: 'id of its task, or id or slug of a bot with one session only' },
  },
  examples: [
    'bots paper stop sma-crossover',
    'bots paper stop 0198c0de-0000-7000-8000-00000000dddd',
  ],
  async run(server, { session }) {
    const { bot_id: bot_ref, task_id } = await findSession(server, session);
    const path = '/bots/{bot_ref}/paper/stop/{task_id}';
    const task = await server.call<typeof stopPaper>('post', path, {
      params: { bot_ref, task_id },
    });
    return stopAnswer(task);
  },
});

const MOST_NAMED = 10;

/** @throws ServiceError `not_found`; `usage` if the bot has several sessions */
async function findSession(
  server: Client,
  ref: string,
): Promise<{ readonly bot_id: string; readonly task_id: string }> {
  const task = await findOptional(findTask(server, ref));
  if (task !== undefined) return task;
  const bot = await findOptional(findBot(server, ref));
  if (bot === undefined) {
    throw new ServiceError('not_found', `there is no task or bot ${JSON.stringify(ref)}`, {
      remedy: 'See `service-local tasks list` or `service-local bots list`.',
    });
  }
  const sessions = bot.answer.active_deployments.filter(({ target }) => target === 'paper');
  const [first, ...others] = sessions;
  if (first === undefined) {
    throw new ServiceError('not_found', `the bot ${ref} has no running paper session`, {
      remedy: `See ended sessions with \`service-local bots deployments ${ref}\`.`,
    });
  }
  if (others.length === 0) return first;
  const named = sessions.slice(0, MOST_NAMED).map(({ task_id }) => task_id);
  const count = formatCountOf(sessions.length, 'session');
  throw new ServiceError('usage', `the bot ${ref} has ${count}: ${named.join(', ')}`, {
    remedy: `Pass the task of one session; see \`service-local bots paper status ${ref}\`.`,
  });
}
