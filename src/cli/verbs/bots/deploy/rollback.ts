import { ServiceError } from '../../../../base/errors.ts';
import { BOT_ARGUMENT } from '../../../bots.ts';
import { parseCount } from '../../../parse-count.ts';
import {
  findActiveDeployments,
  requestDeployment,
  deployedAnswer,
  listClusterDeployments,
  findDeployment,
  requireSingle,
  WAIT_OPTION,
  type Deployed,
} from '../../../production.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'replace the deployed version with an earlier one',
  description:
    'Stops the current deployment of the bot and deploys an earlier version with the same options. The earlier version continues with the account of the stopped one. The bot must not be deployed more than once.',
  arguments: { bot: BOT_ARGUMENT },
  options: {
    to: {
      value: 'n',
      description: 'version to deploy; by default the one deployed before',
      parse: parseCount,
    },
    wait: WAIT_OPTION,
  },
  examples: [
    'bots deploy rollback sma-crossover --wait',
    'bots deploy rollback sma-crossover --to 3',
  ],
  async run(server, { bot: bot_ref }, { to, wait }, context) {
    const now = requireSingle(bot_ref, await findActiveDeployments(server, bot_ref));
    const { value: last } = now ? {} : await listClusterDeployments(server, bot_ref).next();
    const from = now ?? (last && (await findDeployment(server, bot_ref, last.deployment_id)));
    if (from === undefined) {
      throw new ServiceError('conflict', `the bot ${bot_ref} was never deployed to a cluster`, {
        reason: 'never_deployed',
        remedy: `Deploy it with \`service-local bots deploy ${bot_ref}\`.`,
      });
    }
    let version = to;
    if (version === undefined) {
      for await (const one of listClusterDeployments(server, bot_ref)) {
        // Ids sort by the time of the request.
        const isBefore = one.deployment_id < from.deployment_id;
        if (!isBefore || one.version === from.version) continue;
        ({ version } = one);
        break;
      }
    }
    if (version === undefined) {
      throw new ServiceError('conflict', `no other version of ${bot_ref} was deployed before`, {
        reason: 'never_deployed',
        remedy: 'Name the version with --to.',
      });
    }
    const body = { ...from.request, version, replace: true };
    const deployed = (await requestDeployment(server, bot_ref, body)) as Deployed;
    return deployedAnswer(context, server, bot_ref, deployed, wait);
  },
});
