import { INSTALL_OPTIONS, findInstall, withSeeding } from '../../cloud.ts';
import { formatLimits } from '../../leases.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'seed, redeploy and verify what is due',
  description:
    'Run this every hour as a scheduled job. Issues and stores a new lease if the current one is due or invalid, redeploys the services that run with another lease, waits for them and verifies the result. Prints nothing if nothing is due. Resumes an interrupted run. Exits with 0 if the secrets and services are up to date, otherwise with another code. Reads the secrets.',
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
          if (seeded) out.line(`The lease ${lease.lease_id} is valid until ${lease.expires_at}.`);
          if (redeployed.length > 0)
            out.line(`Redeployed ${redeployed.join(', ')} with this lease.`);
        },
      };
    } finally {
      services?.close();
    }
  },
});
