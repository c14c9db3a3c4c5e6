import { BOT_ARGUMENT } from '../../../bots.ts';
import {
  findActiveDeployments,
  listClusterDeployments,
  findDeployment,
  showDeployment,
} from '../../../production.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'show the state of the deployments of a bot to clusters',
  description:
    'Shows each deployment of the bot to a cluster that has not ended: the state of its pods and the last report of its runner. If all have ended, shows the last one.',
  arguments: { bot: BOT_ARGUMENT },
  examples: [
    'bots deploy status sma-crossover',
    'bots deploy status sma-crossover --json | jq -r .deployments[0].cluster_state.phase',
  ],
  async run(server, { bot: bot_ref }) {
    const active = await findActiveDeployments(server, bot_ref);
    const { value: newest } =
      active.length > 0 ? {} : await listClusterDeployments(server, bot_ref).next();
    const last = newest && (await findDeployment(server, bot_ref, newest.deployment_id));
    return {
      data: { deployments: active, ...(last && { last }) },
      show(out) {
        for (const one of active) showDeployment(out, one);
        if (active.length > 0) return;
        if (last === undefined) return out.line('The bot was never deployed to a cluster.');
        showDeployment(out, last);
        out.line(`It ended at ${last.ended_at}.`);
      },
    };
  },
});
