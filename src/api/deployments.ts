import { z } from '@hono/zod-openapi';
import { RiskState } from './bot-state.ts';
import {
  administrator,
  botPath,
  defineRoute,
  id,
  jsonBody,
  jsonResponse,
  text,
  time,
} from './http.ts';
import { deploymentPath, endedOrders, EXAMPLE_DEPLOYMENT_ID, RunnerStatus } from './runners.ts';
import { BotDeployment, changes, Task, TaskReference, TASK_LOCATION } from './tasks.ts';

const trading = { tags: ['Production'], security: administrator('trade') };
const reading = { tags: ['Production'], security: administrator('read') };

const label = z
  .string()
  .regex(/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/, 'must be the name of a namespace');
const secretName = z
  .string()
  .max(253)
  .regex(/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/, 'must be the name of a Secret');

const venue = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('simulated') }),
    z.strictObject({
      type: z.literal('exchange'),
      credentials_secret: secretName.describe(
        'Name of the Secret in the namespace with `apiKey`, `secret` and, if the exchange requires them, `password` and `uid`. The server never reads the contents.',
      ),
    }),
  ])
  .openapi('Venue', {
    description:
      'Where orders go: `simulated` fills them from the bars, without real money; `exchange` places them at the exchange.',
  });

const request = {
  cluster: id('trading')
    .optional()
    .describe(
      'Name of the cluster in `clusters_file` of the server; by default the only one there.',
    ),
  namespace: label
    .optional()
    .describe('By default the namespace of the spec, else that of the cluster.'),
  version: z.int().min(1).optional().describe('By default the current version.'),
  exchange: id('binance')
    .optional()
    .describe(
      'Name of the exchange in `exchanges_file` of the server; by default the only one there.',
    ),
  venue: venue.optional().describe('By default `simulated`.'),
  lease_secret: secretName
    .optional()
    .describe(
      'Name of the Secret in the namespace with `lease` and `public_key`. Without it, a runner places no orders at an exchange.',
    ),
  params: changes.params,
};

const DeployRequest = z
  .strictObject({
    ...request,
    replace: z
      .boolean()
      .optional()
      .describe(
        'Stops the deployment of the bot in the namespace first, and starts with its remaining account: cash, positions, and the state of its loss limits.',
      ),
    reset_losses: text(500)
      .optional()
      .describe(
        'Reason to restart the loss limits. By default, losses of the previous deployment still count: in full with `replace`, else in proportion to the new account.',
      ),
    mode: z
      .enum(['apply', 'render', 'dry_run'])
      .optional()
      .describe(
        'By default `apply`. `render` and `dry_run` change nothing on the server or in the cluster.',
      ),
  })
  .openapi('DeployRequest');

const Deployed = z
  .strictObject({
    ...TaskReference.shape,
    deployment_id: z.string(),
    version: z.int(),
    cluster: z.string(),
    namespace: z.string(),
    replaces: z
      .string()
      .nullable()
      .describe('The deployment that is stopped first; null if none is.'),
  })
  .openapi('Deployed');

const Rendered = z
  .strictObject({
    mode: z.literal('render'),
    yaml: z.string().describe('The manifests that would be applied.'),
  })
  .openapi('RenderedDeployment');

const Difference = z
  .strictObject({
    mode: z.literal('dry_run'),
    changes: z.array(
      z.strictObject({
        kind: z.string(),
        name: z.string(),
        change: z.enum(['create', 'change', 'none']),
        lines: z.array(z.string()).describe('Lines `+ path: value` and `- path: value`.'),
      }),
    ),
  })
  .openapi('DeploymentDifference', {
    description: 'Result of a dry run on the API server of the cluster.',
  });

export const deployBot = defineRoute({
  ...trading,
  method: 'post',
  path: '/bots/{bot_ref}/deploy',
  operationId: 'deployBot',
  summary: 'Deploy a version of a bot to a cluster',
  description:
    'Starts a pod that trades in the cluster. A server supervises the deployment until it ends, also after a crash. The spec must state each limit of `risk`, and the bot must be able to trade and must not be halted. The cluster of a customer also requires the feature `byoc_deployments`. A draft bot becomes active.',
  feature: 'live_trading',
  idempotent: true,
  request: {
    params: botPath,
    body: jsonBody(DeployRequest, {
      simulated: { cluster: 'trading' },
      render: { cluster: 'trading', mode: 'render' },
    }),
  },
  responses: {
    200: jsonResponse('With the modes `render` and `dry_run`.', z.union([Rendered, Difference])),
    202: { ...jsonResponse('The deployment is queued.', Deployed), headers: TASK_LOCATION },
  },
  errors: [
    'not_found',
    'conflict',
    'database_not_adopted',
    'invalid_spec',
    'bundle_tampered',
    'cluster_unavailable',
  ],
});

export const stopDeployment = defineRoute({
  ...trading,
  method: 'post',
  path: '/bots/{bot_ref}/deploy/stop/{task_id}',
  operationId: 'stopDeployment',
  summary: 'Stop a production deployment',
  description:
    'The runner cancels its working orders and reads them back from the venue. Then its pod and everything else in the cluster except its volume is removed. Positions do not change. The stop succeeds once all orders are known to have ended. At an exchange, the pod keeps sending cancellations until then. A deployment that has not started is canceled. A deployment that has ended does not change.',
  request: {
    params: z.strictObject({ ...botPath.shape, task_id: id(EXAMPLE_DEPLOYMENT_ID) }),
    query: z.strictObject({
      abandon: text(500)
        .optional()
        .describe(
          'Reason not to wait for orders that may rest at the exchange, for example because a person has canceled them there. The deployment then ends as not verified.',
        ),
    }),
  },
  responses: { 200: jsonResponse('The updated task.', Task) },
  errors: ['not_found', 'conflict'],
});

const Pod = z.strictObject({
  name: z.string(),
  phase: z.string(),
  ready: z.boolean(),
  restarts: z.int(),
  reason: z.string().nullable(),
  message: z.string().nullable(),
});

const ClusterState = z
  .strictObject({
    phase: z.enum(['missing', 'progressing', 'ready', 'degraded', 'scaled_down']),
    message: z.string().nullable(),
    reason: z
      .string()
      .nullable()
      .describe(
        'Why the phase is not `ready`, for example `image_pull`, `crash_loop`, `namespace_missing` or `unreachable`. If the cluster is unreachable, the other fields are from the last observation.',
      ),
    version: z.int().nullable().describe('Version of the bot in the cluster.'),
    pods: z.array(Pod),
    observed_at: time,
  })
  .openapi('ClusterState');

const KnownRunner = z
  .strictObject({
    status: RunnerStatus.nullable().describe('Null before the first report.'),
    denying: z
      .string()
      .nullable()
      .describe('Why the runner places no new orders; null if it does.'),
    venue: z
      .strictObject({
        connected: z.boolean(),
        open_orders: z.int().nullable(),
        checked_at: time.nullable(),
      })
      .nullable(),
    reported_at: time.nullable(),
    version: z
      .string()
      .nullable()
      .describe('Version of service-local of the runner, as of its last report.'),
    epoch: z.int().describe('Number of instances so far.'),
    claimed: z.boolean().describe('Whether an instance holds the claim, and may trade now.'),
    ended: z
      .strictObject({
        outcome: z.enum(['stopped', 'halted', 'failed']),
        verified: z.boolean(),
        orders: endedOrders,
      })
      .nullable(),
  })
  .openapi('Runner', { description: 'The process that trades, as of its last report.' });

const ProductionDeployment = z
  .strictObject({
    ...BotDeployment.shape,
    cluster: z.string(),
    namespace: z.string(),
    request: z.strictObject(request).describe('The terms of the request.'),
    replaces: z.string().nullable(),
    waits: z
      .boolean()
      .describe('Whether the deployment waits for the end of the deployment that it replaces.'),
    opening: z
      .strictObject({
        cash: z.number(),
        positions: z.record(
          z.string(),
          z.strictObject({ quantity: z.number(), price: z.number() }),
        ),
        risk: RiskState.optional(),
      })
      .nullable()
      .describe(
        'The opening account of a deployment that continues an account or its losses; null if it starts with the cash of the spec.',
      ),
    applied_at: time.nullable(),
    scaled_down_at: time
      .nullable()
      .describe('Time since which the cluster is known to have no pod of the deployment.'),
    cluster_state: ClusterState.nullable(),
    runner: KnownRunner,
  })
  .openapi('ProductionDeployment');

export type ProductionDeployment = z.infer<typeof ProductionDeployment>;

export const getProductionDeployment = defineRoute({
  ...reading,
  method: 'get',
  path: '/bots/{bot_ref}/deployments/{deployment_id}',
  operationId: 'getProductionDeployment',
  summary: 'Show a production deployment with its pods and runner',
  request: { params: z.strictObject({ ...botPath.shape, ...deploymentPath.shape }) },
  responses: { 200: jsonResponse('The deployment, as last observed.', ProductionDeployment) },
  errors: ['not_found', 'conflict'],
});
