import { ServiceError } from '../../../base/errors.ts';
import type { Install } from '../../../deploy/cloud/cloud-file.ts';
import type { Outlook, RunningService } from '../../../deploy/cloud/in-use.ts';
import { NO_VALUE } from '../../../base/format.ts';
import { INSTALL_OPTIONS, findInstall, SECRET_COLUMNS, withStore } from '../../cloud.ts';
import { showItems, type Columns } from '../../show-items.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'say which lease a customer runs with, and by when to act',
  description:
    'Which lease the secret holds, which one the services run with, and by when (in UTC) somebody must act, so that nothing that runs or is started anew loses its license. Exits with 0 while all works, also when something is to be done; with 4 when a lease is not good or it is not known what a service runs with.',
  options: INSTALL_OPTIONS,
  settings: ['cloud_file', 'clusters_file'],
  examples: [
    'cloud status --customer acme --env prod',
    'cloud status --customer acme --env prod --json | jq -r .act_by',
  ],
  async run(context, _args, options) {
    const { isUsable } = await import('../../../deploy/cloud/check.ts');
    const { leaseInUse } = await import('../../../deploy/cloud/in-use.ts');
    const { openServices } = await import('../../../deploy/cloud/open.ts');
    const install = await findInstall(context, options);
    const services = await openServices(install, context.settings.clusters_file);
    try {
      const { checked, running, outlook } = await withStore(context, install, (store) =>
        leaseInUse(install, store, services, Date.now()),
      );
      const { public_key, lease: secret, facts: lease } = checked;
      const secrets = [public_key, secret];
      return {
        data: {
          customer: install.customer,
          env: install.env,
          license_deployment_id: install.license_deployment_id,
          secrets,
          lease: lease ?? null,
          services: running ?? [],
          inferred_from: services?.inferred_from ?? null,
          ...outlook,
        },
        failure: failureOf(isUsable(checked), outlook),
        show(out) {
          showItems(out, secrets, SECRET_COLUMNS);
          if (lease) {
            out.line();
            out.line(
              `The secret holds the lease ${lease.lease_id}, good until ${lease.expires_at}, with grace until ${lease.grace_ends_at}, to be renewed at ${lease.due_at}.`,
            );
          }
          out.line();
          if (running === undefined) {
            out.line(
              'It is not known what runs with it, as cloud_file names no services: what was started before the lease was written has an older one, or none.',
            );
          } else {
            showItems(out, running, COLUMNS);
            out.line(services!.inferred_from);
          }
          out.line(adviceOf(outlook, install));
        },
      };
    } finally {
      services?.close();
    }
  },
});

const COLUMNS: Columns<RunningService> = {
  role: ({ role }) => role,
  name: ({ name }) => name,
  rollout: ({ rollout }) => rollout,
  tasks: ({ tasks: { wanted, current, previous, older, unclear } }) =>
    `${current + previous + older + unclear} of ${wanted}, ${current} with the lease of the secret`,
  lease: ({ lease_id }) => lease_id ?? NO_VALUE,
  'works until': ({ grace_ends_at }) => grace_ends_at ?? NO_VALUE,
};

function failureOf(isUsable: boolean, { act_by }: Outlook): ServiceError | undefined {
  if (!isUsable) {
    return new ServiceError('license_invalid', 'the secrets hold no lease that works', {
      remedy: 'Write one with `service-local cloud renew`, with the same --customer and --env.',
    });
  }
  if (act_by !== null && Date.parse(act_by) > Date.now()) return undefined;
  const text =
    act_by === null
      ? 'it is not known of every service which lease it runs with'
      : `services run with a lease that ended on ${act_by}`;
  return new ServiceError('license_invalid', text, {
    remedy: 'Have them read the secret with `service-local cloud redeploy --wait`.',
  });
}

function adviceOf({ action, act_by }: Outlook, { customer, env, services }: Install): string {
  const by = act_by === null ? 'at once' : `by ${act_by}`;
  const which = `--customer ${customer} --env ${env}`;
  const what = services.type === 'none' ? 'what reads it' : 'all';
  const advice: Readonly<Record<Outlook['action'], string>> = {
    none: `Nothing is to be done now; without a renewal ${what} works until ${act_by}.`,
    wait: `A rollout is under way; if it is not done, act ${by}.`,
    redeploy: `Act ${by}: service-local cloud redeploy ${which} --wait`,
    renew: `Act ${by}: service-local cloud renew ${which}`,
  };
  return advice[action];
}
