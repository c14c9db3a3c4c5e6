import { ServiceError } from '../../../base/errors.ts';
import type { Install } from '../../../deploy/cloud/cloud-file.ts';
import type { Outlook, RunningService } from '../../../deploy/cloud/in-use.ts';
import { NO_VALUE } from '../../../base/format.ts';
import { INSTALL_OPTIONS, findInstall, SECRET_COLUMNS, withStore } from '../../cloud.ts';
import { showItems, type Columns } from '../../show-items.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'show which lease a customer runs with, and by when to act',
  description:
    'Shows the lease in the secret, the lease that each service runs with, and by when (in UTC) you must act so that running and new tasks stay licensed. Exits with 0 while all tasks are licensed, even if there is something to do. Exits with 4 if a lease is not valid or the lease of a service is unknown.',
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
              `The secret contains the lease ${lease.lease_id}, valid until ${lease.expires_at}, with grace until ${lease.grace_ends_at}. Renewal is due at ${lease.due_at}.`,
            );
          }
          out.line();
          if (running === undefined) {
            out.line(
              'It is unknown what runs with this lease, because cloud_file lists no services. Processes that started before the lease was written have an older lease, or none.',
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
  'licensed until': ({ grace_ends_at }) => grace_ends_at ?? NO_VALUE,
};

function failureOf(isUsable: boolean, { act_by }: Outlook): ServiceError | undefined {
  if (!isUsable) {
    return new ServiceError('license_invalid', 'the secrets contain no usable lease', {
      remedy: 'Run `service-local cloud renew` with the same --customer and --env.',
    });
  }
  if (act_by !== null && Date.parse(act_by) > Date.now()) return undefined;
  const text =
    act_by === null
      ? 'the lease of at least one service is unknown'
      : `services run with a lease that ended at ${act_by}`;
  return new ServiceError('license_invalid', text, {
    remedy:
      'Run `service-local cloud redeploy --wait` with the same --customer and --env, so that the services read the secret.',
  });
}

function adviceOf({ action, act_by }: Outlook, { customer, env, services }: Install): string {
  const by = act_by === null ? 'now' : `by ${act_by}`;
  const which = `--customer ${customer} --env ${env}`;
  const what = services.type === 'none' ? 'tasks that read the secrets' : 'all tasks';
  const advice: Readonly<Record<Outlook['action'], string>> = {
    none: `Nothing to do. Without a renewal, ${what} are licensed until ${act_by}.`,
    wait: `A rollout is in progress. If it does not finish, act ${by}.`,
    redeploy: `Act ${by}: service-local cloud redeploy ${which} --wait`,
    renew: `Act ${by}: service-local cloud renew ${which}`,
  };
  return advice[action];
}
