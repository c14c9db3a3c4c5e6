import { ServiceError } from '../../../base/errors.ts';
import { INSTALL_OPTIONS, findInstall } from '../../cloud.ts';
import { defineVerb } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'print the permissions that each role needs',
  description:
    'Prints the least permissions of each role as JSON: IAM policies for AWS, Roles for Kubernetes, null if none are needed. `seed` can write but not read. `tasks` can read; preflight, status and renew need it too. `redeploy` can redeploy the services. On AWS, attach `tasks` to the task execution role. On Kubernetes, grant it to the users of these commands; pods need no Role. Sends no requests.',
  options: {
    ...INSTALL_OPTIONS,
    account: {
      value: 'id',
      description: 'id of the AWS account (default: any account)',
      parse: accountOf,
    },
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
  throw new ServiceError('usage', 'must be an AWS account id of 12 digits');
}
