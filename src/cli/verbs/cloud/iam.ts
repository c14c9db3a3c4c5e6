import { ServiceError } from '../../../base/errors.ts';
import { INSTALL_OPTIONS, findInstall } from '../../cloud.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'print what each role must be allowed',
  description:
    'What each role must be allowed, and no more, as JSON: `seed` writes and cannot read; `tasks` reads, and preflight, status and renew need it, too; `redeploy` deploys the services anew. For AWS these are policies (`tasks` belongs to the execution role), for Kubernetes Roles (`tasks` for whoever runs these verbs: pods need none); null where nothing is needed. Asks nobody.',
  options: {
    ...INSTALL_OPTIONS,
    account: { value: 'id', description: 'of AWS (default: any)', parse: accountOf },
  },
  settings: ['cloud_file'],
  examples: [
    'cloud iam --customer acme --env prod --account 123456789012',
    'cloud iam --customer acme --env prod | jq .seed > seed-policy.json',
  ],
  async run(context, _args, options) {
    const { policiesOf } = await import('../../../deploy/cloud/policies.ts');
    const policies = policiesOf(await findInstall(context, options), options.account);
    return {
      data: policies,
      show: (out) => out.line(JSON.stringify(policies, null, 2)),
    };
  },
});

function accountOf(text: string): string {
  if (/^[0-9]{12}$/.test(text)) return text;
  throw new ServiceError('usage', 'needs the 12 digits of an account');
}
