import type {
  AwsDefinition,
  EcsDefinition,
  Install,
  SecretDefinition,
  SecretNames,
} from './cloud-file.ts';

/** The least permissions per role: IAM policies for AWS, Roles for Kubernetes. Null if none needed. */
export interface Policies {
  /** For `cloud seed` and `cloud renew`; does not allow reading. */
  readonly seed: object | null;
  /** For the tasks, and for preflight, status and renew, which read the same secrets. */
  readonly tasks: object | null;
  /** For redeploy, status and renew. */
  readonly redeploy: object | null;
}

/** @param account AWS account ID; any account by default. */
export function policiesOf(install: Install, account = '*'): Policies {
  const { store, services } = install;
  const secrets =
    store.type === 'aws'
      ? awsSecrets(install.secrets, store, account)
      : store.type === 'kubernetes'
        ? kubernetesSecrets(install, store)
        : { seed: null, tasks: null };
  const redeploy =
    services.type === 'ecs'
      ? ecsPolicy(services, account)
      : services.type === 'kubernetes'
        ? role('redeploy', install, services.namespace, [
            {
              apiGroups: ['apps'],
              resources: ['deployments'],
              resourceNames: [services.api, services.worker, services.scheduler],
              verbs: ['get', 'patch'],
            },
            { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
          ])
        : null;
  return { ...secrets, redeploy };
}

function awsSecrets(
  names: SecretNames,
  { region = '*', kms_key }: AwsDefinition,
  account: string,
): Pick<Policies, 'seed' | 'tasks'> {
  // AWS appends a dash and six random characters to the name of each secret.
  const Resource = [names.public_key, names.lease].map(
    (name) => `arn:${partition(region)}:secretsmanager:${region}:${account}:secret:${name}-??????`,
  );
  const key = (...Action: string[]) =>
    kms_key === undefined
      ? []
      : [
          {
            Sid: 'KeyOfSecrets',
            Effect: 'Allow',
            Action,
            Resource: kms_key.startsWith('arn:') && kms_key.includes(':key/') ? kms_key : '*',
            Condition: {
              StringLike: { 'kms:ViaService': `secretsmanager.${region}.amazonaws.com` },
            },
          },
        ];
  const write = ['secretsmanager:CreateSecret', 'secretsmanager:PutSecretValue'];
  return {
    seed: policy(
      { Sid: 'WriteLease', Effect: 'Allow', Action: write, Resource },
      ...key('kms:GenerateDataKey', 'kms:Decrypt'),
    ),
    tasks: policy(
      { Sid: 'ReadLease', Effect: 'Allow', Action: ['secretsmanager:GetSecretValue'], Resource },
      ...key('kms:Decrypt'),
    ),
  };
}

function ecsPolicy(
  { region = '*', cluster, api, worker, scheduler }: EcsDefinition,
  account: string,
): object {
  const arn = (rest: string): string => `arn:${partition(region)}:ecs:${region}:${account}:${rest}`;
  return policy(
    {
      Sid: 'DeployAnew',
      Effect: 'Allow',
      Action: ['ecs:DescribeServices', 'ecs:UpdateService'],
      Resource: [api, worker, scheduler].map((name) => arn(`service/${cluster}/${name}`)),
    },
    {
      Sid: 'ListTasks',
      Effect: 'Allow',
      Action: ['ecs:ListTasks'],
      Resource: '*',
      Condition: { ArnLike: { 'ecs:cluster': arn(`cluster/${cluster}`) } },
    },
    {
      Sid: 'LookAtTasks',
      Effect: 'Allow',
      Action: ['ecs:DescribeTasks'],
      Resource: arn(`task/${cluster}/*`),
    },
  );
}

function policy(...Statement: readonly object[]): object {
  return { Version: '2012-10-17', Statement };
}

function partition(region: string): string {
  if (region.startsWith('cn-')) return 'aws-cn';
  return region.startsWith('us-gov-') ? 'aws-us-gov' : 'aws';
}

function kubernetesSecrets(
  install: Install,
  { namespace, secret }: SecretDefinition,
): Pick<Policies, 'seed' | 'tasks'> {
  const secrets = { apiGroups: [''], resources: ['secrets'] };
  const own = { ...secrets, resourceNames: [secret] };
  return {
    // Kubernetes cannot restrict `create` to a name.
    seed: role('seed', install, namespace, [
      { ...secrets, verbs: ['create'] },
      { ...own, verbs: ['patch'] },
    ]),
    tasks: role('tasks', install, namespace, [{ ...own, verbs: ['get'] }]),
  };
}

function role(
  what: string,
  { customer, env }: Install,
  namespace: string | undefined,
  rules: readonly object[],
): object {
  return {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    metadata: {
      name: `service-local-${what}.${customer}.${env}`,
      ...(namespace !== undefined && { namespace }),
    },
    rules,
  };
}
