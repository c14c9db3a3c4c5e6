import { z } from '@hono/zod-openapi';
import { Carry, RiskState } from './bots.ts';
import {
  administrator,
  jsonResponse,
  defineRoute,
  id,
  jsonBody,
  searchText,
  text,
  time,
  type Security,
} from './http.ts';
import { BotDeployment, changes, Task, TaskReference, TASK_LOCATION } from './tasks.ts';

const trading = { tags: ['Production'], security: administrator('trade') };
const reading = { tags: ['Production'], security: administrator('read') };
const runner: Security = [{ runner: [] }];

const botPath = z.strictObject({ bot_ref: id('sma-crossover') });

/** Id of the deployment in the examples, and of its task. */
export const EXAMPLE_DEPLOYMENT_ID = '0198c0de-0000-7000-8000-0000000000dd';

const deploymentPath = z.strictObject({ deployment_id: id(EXAMPLE_DEPLOYMENT_ID) });

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
      credentials_secret: secretName.openapi({
        description:
          'Name of the Secret in the namespace with `apiKey`, `secret` and, if the exchange requires them, `password` and `uid`. The server never reads the contents.',
      }),
    }),
  ])
  .openapi('Venue', {
    description:
      'Where orders go: `simulated` fills them from the bars, without real money; `exchange` places them at the exchange.',
  });

const request = {
  cluster: id('trading').optional().openapi({
    description:
      'Name of the cluster in `clusters_file` of the server; by default the only one there.',
  }),
  namespace: label
    .optional()
    .openapi({ description: 'By default the namespace of the spec, else that of the cluster.' }),
  version: z.int().min(1).optional().openapi({ description: 'By default the current version.' }),
  exchange: id('binance').optional().openapi({
    description:
      'Name of the exchange in `exchanges_file` of the server; by default the only one there.',
  }),
  venue: venue.optional().openapi({ description: 'By default `simulated`.' }),
  lease_secret: secretName.optional().openapi({
    description:
      'Name of the Secret in the namespace with `lease` and `public_key`. Without it, a runner places no orders at an exchange.',
  }),
  params: changes.params,
};

const DeployRequest = z
  .strictObject({
    ...request,
    replace: z.boolean().optional().openapi({
      description:
        'Stops the deployment of the bot in the namespace first, and starts with its remaining account: cash, positions, and the state of its loss limits.',
    }),
    reset_losses: text(500).optional().openapi({
      description:
        'Reason to restart the loss limits. By default, losses of the previous deployment still count: in full with `replace`, else in proportion to the new account.',
    }),
    mode: z.enum(['apply', 'render', 'dry_run']).optional().openapi({
      description:
        'By default `apply`. `render` and `dry_run` change nothing on the server or in the cluster.',
    }),
  })
  .openapi('DeployRequest');

const Deployed = TaskReference.extend({
  deployment_id: z.string(),
  version: z.int(),
  cluster: z.string(),
  namespace: z.string(),
  replaces: z
    .string()
    .nullable()
    .openapi({ description: 'The deployment that is stopped first; null if none is.' }),
}).openapi('Deployed');

const Rendered = z
  .strictObject({
    mode: z.literal('render'),
    yaml: z.string().openapi({ description: 'The manifests that would be applied.' }),
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
        lines: z
          .array(z.string())
          .openapi({ description: 'Lines `+ path: value` and `- path: value`.' }),
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
      abandon: text(500).optional().openapi({
        description:
          'Reason not to wait for orders that may rest at the exchange, for example because a person has canceled them there. The deployment then ends as not verified.',
      }),
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
    reason: z.string().nullable().openapi({
      description:
        'Why the phase is not `ready`, for example `image_pull`, `crash_loop`, `namespace_missing` or `unreachable`. If the cluster is unreachable, the other fields are from the last observation.',
    }),
    version: z.int().nullable().openapi({ description: 'Version of the bot in the cluster.' }),
    pods: z.array(Pod),
    observed_at: time,
  })
  .openapi('ClusterState');

const RunnerStatus = z.enum(['starting', 'trading', 'denying', 'halting', 'stopping', 'ended']);

/** Symbols must be well-formed Unicode, because states are hashed as canonical JSON. */
const symbol = z
  .string()
  .min(1)
  .max(100)
  .refine((name) => name.isWellFormed(), 'must be Unicode');

const endedOrders = z
  .array(
    z.strictObject({
      order: z.int(),
      symbol,
      verified: z
        .boolean()
        .openapi({ description: 'Whether the venue reports that the order has ended.' }),
    }),
  )
  .max(10_000);

const KnownRunner = z
  .strictObject({
    status: RunnerStatus.nullable().openapi({ description: 'Null before the first report.' }),
    denying: z
      .string()
      .nullable()
      .openapi({ description: 'Why the runner places no new orders; null if it does.' }),
    venue: z
      .strictObject({
        connected: z.boolean(),
        open_orders: z.int().nullable(),
        checked_at: time.nullable(),
      })
      .nullable(),
    reported_at: time.nullable(),
    epoch: z.int().openapi({ description: 'Number of instances so far.' }),
    claimed: z
      .boolean()
      .openapi({ description: 'Whether an instance holds the claim, and may trade now.' }),
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
    request: z.strictObject(request).openapi({ description: 'The terms of the request.' }),
    replaces: z.string().nullable(),
    waits: z.boolean().openapi({
      description: 'Whether the deployment waits for the end of the deployment that it replaces.',
    }),
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
      .openapi({
        description:
          'The opening account of a deployment that continues an account or its losses; null if it starts with the cash of the spec.',
      }),
    applied_at: time.nullable(),
    scaled_down_at: time.nullable().openapi({
      description: 'Time since which the cluster is known to have no pod of the deployment.',
    }),
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

/** Event kinds that a runner may add to the log of its bot; servers record all other kinds. */
const EVENT_KIND =
  /^(order|account|data|venue|clock)(\.[a-z_]+)+$|^control\.(denying|halted|latch_lifted|epoch_set)$|^risk\.(thresholds_set|override_(granted|ended|used))$/;

/** Range of RFC 3339 times. */
const [FIRST_TIME, LAST_TIME] = [Date.parse('0001-01-01'), Date.parse('9999-12-31')];

/** Events `data.bars` are checked strictly, because re-runs of a session read them. */
const barsPayload = z.strictObject({
  time,
  bars: z.record(symbol, z.tuple([z.number(), z.number(), z.number(), z.number(), z.number()])),
});

const SessionEvent = z
  .strictObject({
    kind: z.string().max(64).regex(EVENT_KIND, 'must be a kind of event that runners report'),
    occurred_at: z
      .int()
      .min(FIRST_TIME)
      .max(LAST_TIME)
      .openapi({ description: 'Milliseconds since the Unix epoch.' }),
    payload: z.record(z.string(), z.unknown()),
  })
  .refine(({ kind, payload }) => kind !== 'control.halted' || !('scope' in payload), {
    error: 'must not have a scope, because a runner can only halt itself',
    path: ['payload'],
  })
  .refine(({ kind, payload }) => kind !== 'data.bars' || barsPayload.safeParse(payload).success, {
    error: 'must be bars: a time, and open, high, low, close and volume by symbol',
    path: ['payload'],
  });

const optional = z.number().optional();

const WorkingOrder = z.object({
  order: z.int(),
  symbol,
  side: z.enum(['buy', 'sell']),
  type: z.enum(['market', 'limit', 'stop', 'stop_limit', 'trailing_stop']),
  time_in_force: z.enum(['gtc', 'day', 'ioc', 'fok']),
  quantity: optional,
  weight: optional,
  limit: optional,
  stop: optional,
  filled: z.number(),
  triggered: z.boolean(),
  client_order_id: z
    .string()
    .max(64)
    .regex(/^[\w-]+$/)
    .optional(),
  pending_cancel: z.literal(true).optional(),
});

/** A `SessionState`. Unknown fields, which newer runners may send, are dropped. */
const SessionState = z
  .object({
    status: z.enum(['running', 'halted', 'failed', 'ruined']),
    time: time.nullable(),
    seq: z.int().min(0),
    cash: z.number(),
    equity: z.number(),
    positions: z.record(symbol, z.number()),
    working: z.array(WorkingOrder),
    carry: Carry,
  })
  .openapi('ReportedSessionState');

const Batch = z
  .strictObject({
    number: z.int().min(1).openapi({
      description: 'Starts at 1 for each deployment. A batch that is already recorded is ignored.',
    }),
    events: z.array(SessionEvent).max(512),
    made_at: z.int().optional().openapi({
      description:
        'Time when the first event was written to disk, in milliseconds since the Unix epoch.',
    }),
    state: SessionState,
    steps: z
      .int()
      .min(0)
      .openapi({ description: 'Total number of steps, each with the bars of one time.' }),
  })
  .openapi('RunnerBatch');

const RunnerReport = z
  .strictObject({
    instance_id: z.uuid().openapi({ description: 'Identifies the process; made when it starts.' }),
    epoch: z.int().min(1).nullable().openapi({
      description: 'The claim that the runner holds; null requests a claim.',
    }),
    status: RunnerStatus,
    denying: searchText(500).nullable(),
    database_epoch: z.int().min(1).optional().openapi({
      description:
        "The newest epoch of the server's database that the runner knows; 1 by default. A server with an older epoch stops trading until its database is adopted.",
    }),
    batch: Batch.nullable(),
    venue: z.strictObject({
      connected: z.boolean(),
      open_orders: z.int().min(0).nullable(),
      checked_at: time.nullable(),
    }),
    ended: z
      .strictObject({
        outcome: z.enum(['stopped', 'halted', 'failed']),
        verified: z.boolean().openapi({
          description:
            'Whether the runner read the open orders back from the venue, and there were none.',
        }),
        orders: endedOrders.openapi({
          description: 'Orders that were working when the end was requested.',
        }),
        error: z
          .strictObject({
            code: z.string().max(64),
            message: z.string().max(2000),
            reason: z.string().max(100).optional(),
            remedy: z.string().max(2000).optional(),
          })
          .nullable(),
      })
      .nullable()
      .openapi({
        description:
          'Present only in the last report, which releases the claim. Later reports of the instance change nothing in the deployment. `failed` ends the deployment.',
      }),
  })
  .openapi('RunnerReport');

export type RunnerReport = z.infer<typeof RunnerReport>;

const share = z
  .strictObject({
    value: z.number(),
    level: z.enum(['client', 'instrument', 'trader', 'desk', 'firm']),
    subject: z.string().openapi({
      description:
        'Empty if the session names no subject at that level; it may then place no orders.',
    }),
    version: z.int(),
    sessions: z.int().openapi({ description: 'Number of sessions that share the threshold.' }),
  })
  .optional();

const Permit = z.strictObject({
  override_id: z.string(),
  symbol,
  side: z.enum(['buy', 'sell']),
  max_quantity: z.number(),
  worst_price: z.number().nullable(),
  controls: z.array(z.string()),
  expires_at: z.int().openapi({ description: 'Milliseconds since the Unix epoch.' }),
});

const RunnerControls = z
  .strictObject({
    thresholds: z.strictObject({
      max_order_value: share,
      max_gross_exposure: share,
      max_daily_loss: share,
      max_messages_per_second: share,
      instruments: z
        .record(
          symbol,
          z.strictObject({
            max_order_value: share,
            max_order_qty: share,
            max_gross_exposure: share,
          }),
        )
        .optional(),
    }),
    permits: z.array(Permit).openapi({ description: 'Overrides that may still be used.' }),
    latches_lifted: z
      .int()
      .openapi({ description: 'Number of latches of the session that people have lifted.' }),
    database_epoch: z.int().optional().openapi({
      description: "Epoch of the server's database, used in the ids of new orders; 1 by default.",
    }),
  })
  .openapi('RunnerControls', {
    description: 'Thresholds, overrides and lifted latches of the session.',
  });

const RunnerAnswer = z
  .strictObject({
    epoch: z.int().openapi({ description: 'The claim, to be sent with the next report.' }),
    claim_seconds: z.int().openapi({
      description:
        'Validity of the claim from this report. After two thirds of that time without a response, a runner places no new orders.',
    }),
    report_seconds: z.int().openapi({ description: 'Interval between reports.' }),
    command: z.enum(['trade', 'halt', 'stop']),
    halt: z
      .strictObject({
        halt_id: z.string(),
        scope: z.enum(['bot', 'all']),
        reason: z.string(),
        by: z.string(),
      })
      .nullable(),
    recorded: z.int().openapi({ description: 'Number of the last recorded batch.' }),
    controls: RunnerControls,
  })
  .openapi('RunnerAnswer');

export type RunnerAnswer = z.infer<typeof RunnerAnswer>;

/** Path of runner reports, whose bodies may be larger than those of other requests. */
export const RUNNER_PATH = /^\/deployments\/[^/]+\/runner$/;

export const reportRunner = defineRoute({
  tags: ['Production'],
  security: runner,
  method: 'post',
  path: '/deployments/{deployment_id}/runner',
  operationId: 'reportRunner',
  summary: 'Report as the runner of a deployment, and receive commands',
  description:
    'Only the instance with the claim may trade. If another instance has it, the report fails with `conflict`, reason `fenced`, and `Retry-After` states for how long. Batches are recorded even while the bot is halted, so that the end of each order is known. For a deployment that has ended, the response is `not_found`; the runner then cancels its orders and exits.',
  request: {
    params: deploymentPath,
    body: jsonBody(RunnerReport, {
      runner: {
        instance_id: '0198c0de-0000-4000-8000-000000000001',
        epoch: null,
        status: 'starting',
        denying: null,
        batch: null,
        venue: { connected: true, open_orders: 0, checked_at: '2026-01-02T03:04:05Z' },
        ended: null,
      },
    }),
  },
  responses: { 200: jsonResponse('Commands for the runner.', RunnerAnswer) },
  errors: ['not_authenticated', 'not_found', 'conflict', 'database_not_adopted'],
});
