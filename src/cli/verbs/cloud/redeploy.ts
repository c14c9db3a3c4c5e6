import { INSTALL_OPTIONS, findInstall, withStore } from '../../cloud.ts';
import { showItems } from '../../show-items.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'have the services of a customer read the secrets',
  description:
    'Tasks that run keep the lease with which they were started: this has the services api, worker and scheduler of the environment deployed anew, each task after another, so that they read the secrets. It does so also when they have the newest lease; `cloud renew` does only what is needed. Refuses while the secrets hold no lease that works, where it may read them.',
  options: {
    ...INSTALL_OPTIONS,
    wait: { description: 'until all new tasks run; Ctrl-C ends the waiting alone' },
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
            'There is nothing to deploy anew: cloud_file names no services. Start again by hand whatever has the lease in its environment.',
          ),
      };
    }
    try {
      const states = await services.states();
      const checked = await withStore(context, install, (store) =>
        checkSecrets(install, store, Date.now()),
      );
      if (checked.lease.status === 'denied' || checked.public_key.status === 'denied') {
        context.message('The secret may not be read: they are deployed anew without a look at it.');
      } else if (!isUsable(checked)) {
        throw checkFailure(checked)!;
      }
      const rollouts = [];
      for (const { role, name } of states) {
        const { id, began_at } = await services.restart({ role, name });
        rollouts.push({ role, name, id, began_at });
        context.message(`${role} ${name}: is being deployed anew`);
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
