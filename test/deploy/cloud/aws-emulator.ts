import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/**
 * Emulates the used parts of AWS Secrets Manager and ECS over HTTP, in the JSON 1.1 protocol of the
 * SDK. Rules of versions and tokens: https://docs.aws.amazon.com/secretsmanager/latest/apireference/
 */
export interface AwsEmulator {
  readonly url: string;
  /** Environment variables for processes that use the emulator. */
  readonly env: Readonly<Record<string, string>>;
  /** Actions that took effect, in order: `ACTION NAME` of the secret or service. */
  readonly done: string[];
  /** All supported actions. */
  readonly actions: readonly string[];
  /** Actions that fail with AccessDeniedException. */
  readonly denied: Set<string>;
  /** Each fault applies to the next request for one of its actions. */
  readonly faults: Fault[];
  /** Awaited after an action takes effect, before the response. */
  onDone: (action: string, name: string) => unknown;
  readonly secrets: Map<string, Secret>;
  readonly services: Map<string, Service>;
  /** Number of DescribeServices requests until a rollout is done. */
  looks: number;
  /** Whether new tasks start. */
  isHealthy: boolean;
  /** Adds services with two tasks each that started at `since`. */
  addServices(names: readonly string[], since: number): void;
  /** The bodies of all requests. */
  readonly received: string[];
  close(): Promise<void>;
}

interface Fault {
  /** The fault applies once, to the first request for any of these actions. */
  readonly actions: readonly string[];
  /** `lost`: the action takes effect, but the connection breaks before the response. */
  readonly kind: 'throttled' | 'broken' | 'lost' | 'refused';
}

interface Secret {
  readonly versions: { readonly id: string; readonly value: string; readonly created: number }[];
  current: string;
  previous: string | undefined;
  kmsKeyId: string | undefined;
  isDeleted: boolean;
}

interface Service {
  desired: number;
  tasks: { readonly arn: string; readonly created: number; readonly started: number | null }[];
  deployments: {
    readonly id: string;
    readonly created: number;
    status: 'PRIMARY' | 'ACTIVE';
    state: 'IN_PROGRESS' | 'COMPLETED' | 'FAILED';
    looks: number;
  }[];
}

class AwsError extends Error {
  readonly type: string;
  readonly status: number;

  constructor(type: string, message: string, status = 400) {
    super(message);
    this.type = type;
    this.status = status;
  }
}

type Input = Readonly<Record<string, unknown>>;

export async function startAwsEmulator(): Promise<AwsEmulator> {
  const server = createServer((request, response) => void serve(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const emulator: AwsEmulator = {
    url,
    env: {
      AWS_ENDPOINT_URL: url,
      AWS_REGION: 'eu-west-1',
      AWS_ACCESS_KEY_ID: 'AKIAEMULATOR',
      AWS_SECRET_ACCESS_KEY: 'canary-aws-secret-key',
      AWS_EC2_METADATA_DISABLED: 'true',
    },
    done: [],
    actions: Object.keys(ACTIONS),
    denied: new Set(),
    faults: [],
    onDone: () => {},
    secrets: new Map(),
    services: new Map(),
    looks: 1,
    isHealthy: true,
    addServices(names, since) {
      for (const name of names) {
        const deployment = { id: randomUUID(), created: since, looks: 0 };
        emulator.services.set(name, {
          desired: 2,
          tasks: [newTask(since), newTask(since)],
          deployments: [{ ...deployment, status: 'PRIMARY', state: 'COMPLETED' }],
        });
      }
    },
    received: [],
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    emulator.received.push(body);
    const action = String(request.headers['x-amz-target']).split('.')[1] ?? '';
    const input = JSON.parse(body) as Input;
    const take = (isEffective: boolean): Fault | undefined => {
      const isIt = ({ actions, kind }: Fault): boolean =>
        actions.includes(action) && (kind === 'lost') === isEffective;
      const index = emulator.faults.findIndex(isIt);
      return index === -1 ? undefined : emulator.faults.splice(index, 1)[0];
    };
    try {
      const fault = take(false);
      if (!/^AWS4-HMAC-SHA256 .*Signature=/.test(request.headers.authorization ?? '')) {
        throw new AwsError('MissingAuthenticationTokenException', 'there is no signature');
      }
      if (emulator.denied.has(action)) {
        throw new AwsError('AccessDeniedException', `not authorized to do ${action}: ${body}`);
      }
      if (fault?.kind === 'throttled') throw new AwsError('ThrottlingException', 'Rate exceeded');
      if (fault?.kind === 'broken') throw new AwsError('InternalServiceError', body, 500);
      if (fault?.kind === 'refused') throw new AwsError('ValidationException', `bad: ${body}`);
      const name = (input['SecretId'] ?? input['Name'] ?? input['service'] ?? '') as string;
      const answer = ACTIONS[action]!(emulator, input);
      emulator.done.push(name === '' ? action : `${action} ${name}`);
      await emulator.onDone(action, name);
      if (take(true)) {
        request.socket.destroy();
        return;
      }
      send(response, 200, answer);
    } catch (error) {
      if (!(error instanceof AwsError)) throw error;
      send(response, error.status, { __type: error.type, message: error.message });
    }
  }
  return emulator;
}

function send(response: ServerResponse, status: number, body: object): void {
  const headers = {
    'content-type': 'application/x-amz-json-1.1',
    'x-amzn-requestid': randomUUID(),
  };
  response.writeHead(status, headers).end(JSON.stringify(body));
}

const ACTIONS: Readonly<Record<string, (emulator: AwsEmulator, input: Input) => object>> = {
  CreateSecret({ secrets }, { Name, SecretString, ClientRequestToken, KmsKeyId }) {
    const name = String(Name);
    const id = tokenOf(ClientRequestToken);
    const there = secrets.get(name);
    if (there !== undefined) {
      const [first] = there.versions;
      if (first?.id === id && first.value === SecretString) return { Name, VersionId: id };
      throw new AwsError('ResourceExistsException', `the secret ${name} is there already`);
    }
    secrets.set(name, {
      versions: [{ id, value: String(SecretString), created: Date.now() }],
      current: id,
      previous: undefined,
      kmsKeyId: KmsKeyId as string | undefined,
      isDeleted: false,
    });
    return { Name, VersionId: id };
  },
  PutSecretValue({ secrets }, { SecretId, SecretString, ClientRequestToken }) {
    const secret = secretOf(secrets, SecretId);
    const id = tokenOf(ClientRequestToken);
    const there = secret.versions.find((version) => version.id === id);
    if (there === undefined) {
      secret.versions.push({ id, value: String(SecretString), created: Date.now() });
      secret.previous = secret.current;
      secret.current = id;
    } else if (there.value !== SecretString) {
      throw new AwsError(
        'ResourceExistsException',
        `${id} has another value: ${String(SecretString)}`,
      );
    }
    const VersionStages = stagesOf(secret, id);
    return { Name: SecretId, VersionId: id, ...(VersionStages.length > 0 && { VersionStages }) };
  },
  GetSecretValue({ secrets }, { SecretId, VersionStage = 'AWSCURRENT' }) {
    const secret = secretOf(secrets, SecretId);
    const id = VersionStage === 'AWSCURRENT' ? secret.current : secret.previous;
    const version = secret.versions.find((each) => each.id === id);
    if (version === undefined) {
      throw new AwsError('ResourceNotFoundException', `there is no ${String(VersionStage)}`);
    }
    return {
      Name: SecretId,
      VersionId: version.id,
      SecretString: version.value,
      VersionStages: stagesOf(secret, version.id),
      CreatedDate: version.created / 1000,
    };
  },
  DescribeServices({ services, looks, isHealthy }, { services: names }) {
    const wanted = names as readonly string[];
    const missing = wanted.filter((name) => !services.has(name));
    const there = wanted.filter((name) => services.has(name));
    return {
      services: there.map((serviceName) => {
        const service = services.get(serviceName)!;
        roll(service, looks, isHealthy);
        return {
          serviceName,
          status: 'ACTIVE',
          desiredCount: service.desired,
          runningCount: service.tasks.length,
          deployments: service.deployments.map(({ id, status, state, created }) => ({
            id,
            status,
            rolloutState: state,
            ...(state === 'FAILED' && { rolloutStateReason: 'tasks failed to start.' }),
            createdAt: created / 1000,
          })),
        };
      }),
      failures: missing.map((arn) => ({ arn, reason: 'MISSING' })),
    };
  },
  ListTasks({ services }, { serviceName, nextToken = '0' }) {
    // One task per page.
    const next = Number(nextToken) + 1;
    const { tasks } = services.get(String(serviceName))!;
    return {
      taskArns: tasks.slice(next - 1, next).map(({ arn }) => arn),
      ...(next < tasks.length && { nextToken: String(next) }),
    };
  },
  DescribeTasks({ services }, { tasks }) {
    const all = [...services.values()].flatMap((service) => service.tasks);
    return {
      tasks: all
        .filter(({ arn }) => (tasks as readonly string[]).includes(arn))
        .map(({ arn, created, started }) => ({
          taskArn: arn,
          createdAt: created / 1000,
          ...(started !== null && { startedAt: started / 1000 }),
        })),
    };
  },
  UpdateService({ services }, { service: name, forceNewDeployment }) {
    const service = services.get(String(name));
    if (service === undefined) throw new AwsError('ServiceNotFoundException', 'no such service');
    if (forceNewDeployment === true) {
      for (const deployment of service.deployments) deployment.status = 'ACTIVE';
      const deployment = { id: randomUUID(), created: Date.now(), looks: 0 };
      service.deployments.unshift({ ...deployment, status: 'PRIMARY', state: 'IN_PROGRESS' });
    }
    const [{ id, created, status }] = service.deployments as [Service['deployments'][0]];
    return {
      service: { serviceName: name, deployments: [{ id, status, createdAt: created / 1000 }] },
    };
  },
};

function roll(service: Service, looks: number, isHealthy: boolean): void {
  const [primary] = service.deployments as [Service['deployments'][0]];
  if (primary.state !== 'IN_PROGRESS' || (primary.looks += 1) <= looks) return;
  primary.state = isHealthy ? 'COMPLETED' : 'FAILED';
  if (!isHealthy) return;
  service.deployments = [primary];
  service.tasks = [newTask(Date.now()), newTask(Date.now())];
}

function newTask(time: number): Service['tasks'][0] {
  return { arn: `arn:aws:ecs:eu-west-1:1:task/acme/${randomUUID()}`, created: time, started: time };
}

function stagesOf(secret: Secret, id: string): string[] {
  return [
    ...(secret.current === id ? ['AWSCURRENT'] : []),
    ...(secret.previous === id ? ['AWSPREVIOUS'] : []),
  ];
}

function secretOf(secrets: AwsEmulator['secrets'], name: unknown): Secret {
  const secret = secrets.get(String(name));
  if (secret === undefined) {
    throw new AwsError('ResourceNotFoundException', `there is no secret ${String(name)}`);
  }
  if (secret.isDeleted) {
    throw new AwsError('InvalidRequestException', `${String(name)} is marked for deletion`);
  }
  return secret;
}

function tokenOf(token: unknown): string {
  if (typeof token === 'string' && token.length >= 32 && token.length <= 64) return token;
  throw new AwsError('InvalidParameterException', `ClientRequestToken is ${String(token)}`);
}
