import { INSTALL_OPTIONS, findInstall, withSeeding } from '../../cloud.ts';
import { formatLimits } from '../../leases.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'seed, redeploy and verify, when it is due',
  description:
    'For a scheduled job, once an hour: when the lease of the secret is to be renewed or is not good, seeds; has the services deployed anew that run with another lease, and waits for them; verifies both. Says nothing when nothing is due. A run that was broken off is gone on with. Exits with 0 when all is as it should be, and with another code when it is not. Reads the secrets.',
  options: INSTALL_OPTIONS,
  settings: ['cloud_file', 'clusters_file', 'server_url'],
  examples: [
    'cloud renew --customer acme --env prod --quiet',
    'cloud renew --customer acme --env prod --json | jq -r .status',
  ],
  async run(context, _args, options) {
    const { renew } = await import('../../../deploy/cloud/renew.ts');
    const { openServices } = await import('../../../deploy/cloud/open.ts');
    const install = await findInstall(context, options);
    const services = await openServices(install, context.settings.clusters_file);
    try {
      const { status, seeded, redeployed, checked } = await withSeeding(
        context,
        install,
        (seeding) => renew(seeding, services),
      );
      for (const line of formatLimits(seeded?.limits ?? [])) context.message(line);
      const lease = checked.facts!;
      return {
        data: {
          customer: install.customer,
          env: install.env,
          status,
          lease,
          redeployed,
          manifest: seeded?.manifest ?? null,
        },
        show(out) {
          if (seeded) out.line(`The lease ${lease.lease_id} is good until ${lease.expires_at}.`);
          if (redeployed.length > 0) out.line(`${redeployed.join(', ')} run with it.`);
        },
      };
    } finally {
      services?.close();
    }
  },
});
