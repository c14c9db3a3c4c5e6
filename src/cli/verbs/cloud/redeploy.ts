import { INSTALL_OPTIONS, findInstall, withStore } from '../../cloud.ts';
import { showItems } from '../../show-items.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'redeploy the services of a customer so that they read the secrets',
  description:
    'Running tasks keep the lease that they started with. This command replaces the tasks of the services api, worker and scheduler one after another, so that new tasks read the current secrets. It does so even if they already have the latest lease; `cloud renew` redeploys only what is outdated. If you may read the secrets, the command fails unless they contain a usable lease.',
  options: {
    ...INSTALL_OPTIONS,
    wait: { description: 'wait until all new tasks run; Ctrl-C stops only the waiting' },
  },
  settings: ['cloud_file', 'clusters_file'],
  examples: ['cloud redeploy --customer acme --env prod --wait'],
  async run(context, _args, options) {
    const { checkFailure, checkSecrets, isUsable } = await import('../../../deploy/cloud/check.ts');
    const { openServices } = await import('../../../deploy/cloud/open.ts');
    const { waitForRollouts } = await import('../../../deploy/cloud/redeploy.ts');
    const install = await findInstall(context, options);
    const services = await openServices(install, context.settings.clusters_file);
    const { customer, env } = install;
    if (services === undefined) {
      return {
        data: { customer, env, services: [] },
        show: (out) =>
          out.line(
            'There is nothing to redeploy: cloud_file lists no services. Restart all processes that have the lease in their environment yourself.',
          ),
      };
    }
    try {
      const states = await services.states();
      const checked = await withStore(context, install, (store) =>
        checkSecrets(install, store, Date.now()),
      );
      if (checked.lease.status === 'denied' || checked.public_key.status === 'denied') {
        context.message(
          'You may not read the secrets, so they were not checked before redeploying.',
        );
      } else if (!isUsable(checked)) {
        throw checkFailure(checked)!;
      }
      const rollouts = [];
      for (const { role, name } of states) {
        const { id, began_at } = await services.restart({ role, name });
        rollouts.push({ role, name, id, began_at });
        context.message(`${role} ${name}: redeploying`);
      }
      if (options.wait) await waitForRollouts(services, rollouts, context.message);
      const done = rollouts.map(({ role, name, id }) => ({
        role,
        name,
        rollout: options.wait ? 'done' : 'in_progress',
        rollout_id: id,
      }));
      return {
        data: { customer, env, services: done },
        show: (out) =>
          showItems(out, done, {
            role: ({ role }) => role,
            name: ({ name }) => name,
            rollout: ({ rollout }) => rollout,
          }),
      };
    } finally {
      services.close();
    }
  },
});
