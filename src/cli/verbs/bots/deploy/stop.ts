import type { stopDeployment } from '../../../../api/deployments.ts';
import { ServiceError } from '../../../../base/errors.ts';
import { findActiveDeployments, requireSingle } from '../../../production.ts';
import { findOptional } from '../../../find-optional.ts';
import { findTask, stopAnswer, waitForTask } from '../../../tasks.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'stop a deployment to a cluster, after canceling its orders',
  description:
    'The runner cancels its working orders and verifies this with the venue. Then the pod and all other objects of the deployment are removed from the cluster, except the volume. Positions stay open. If the deployment has already ended, nothing changes.',
  arguments: {
    deployment: { description: 'id of its task, or id or slug of a bot with one deployment only' },
  },
  options: {
    abandon: {
      value: 'reason',
      description:
        'stop even if orders may still be open at the exchange, for example because you canceled them there',
    },
    wait: { description: 'wait until it has ended; Ctrl-C stops only the waiting' },
  },
  examples: ['bots deploy stop sma-crossover --wait'],
  async run(server, { deployment: ref }, { abandon, wait }, context) {
    const named = await findOptional(findTask(server, ref));
    const found = named ?? requireSingle(ref, await findActiveDeployments(server, ref));
    if (found === undefined) {
      throw new ServiceError('not_found', `the bot ${ref} is not deployed to a cluster`, {
        remedy: `See its last deployment with \`service-local bots deploy status ${ref}\`.`,
      });
    }
    const { bot_id: bot_ref, task_id } = found;
    const path = '/bots/{bot_ref}/deploy/stop/{task_id}';
    const asked = await server.call<typeof stopDeployment>('post', path, {
      params: { bot_ref, task_id },
      query: { abandon },
    });
    if (wait) await waitForTask(context, task_id, 'production');
    const task = wait ? await findTask(server, task_id) : asked;
    return stopAnswer(task, `bots deploy status ${bot_ref}`);
  },
});
