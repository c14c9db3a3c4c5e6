import { z } from '@hono/zod-openapi';
import { Carry, RiskState } from './bots.ts';
import {
  administrator,
  answer,
  defineRoute,
  id,
  json,
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

/** The deployment of the examples, which is also its task. */
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
          'Name of the Secret in the namespace with `apiKey`, `secret` and, where the exchange wants them, `password` and `uid`. The server never sees what is in it.',
      }),
    }),
  ])
  .openapi('Venue', {
    description:
      'Where orders go: `simulated` fills them from the bars, with nobody’s money; `exchange` places them there.',
  });

const request = {
  cluster: id('trading').optional().openapi({
    description: 'As `clusters_file` of the server calls it; by default the only one there.',
  }),
  namespace: label
    .optional()
    .openapi({ description: 'By default that of the spec, else that of the cluster.' }),
  version: z.int().min(1).optional().openapi({ description: 'By default the current one.' }),
  exchange: id('binance').optional().openapi({
    description: 'As `exchanges_file` of the server calls it; by default the only one there.',
  }),
  venue: venue.optional().openapi({ description: 'By default simulated.' }),
  lease_secret: secretName.optional().openapi({
    description:
      'Name of the Secret in the namespace with `lease` and `public_key`: without, a runner places no order at an exchange.',
  }),
  params: changes.params,
};

const DeployRequest = z
  .strictObject({
    ...request,
    replace: z.boolean().optional().openapi({
      description:
        'Stops the bot’s deployment in the namespace first, and begins with its remaining account: cash, positions, and the state of its loss limits.',
    }),
    reset_losses: text(500).optional().openapi({
      description:
        'Reason to restart the loss limits. By default, losses of the previous deployment still count: in full with `replace`, else in proportion to the new account.',
    }),
    mode: z.enum(['apply', 'render', 'dry_run']).optional().openapi({
      description: 'By default `apply`; the others change nothing, neither here nor there.',
    }),
  })
  .openapi('DeployRequest');

const Deployed = TaskReference.extend({
  deployment_id: z.string(),
  version: z.int(),
  cluster: z.string(),
  namespace: z.string(),
  replaces: z.string().nullable().openapi({ description: 'The deployment that is stopped first.' }),
}).openapi('Deployed');

const Rendered = z
  .strictObject({
    mode: z.literal('render'),
    yaml: z.string().openapi({ description: 'The manifests, as they would be applied.' }),
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
        lines: z.array(z.string()).openapi({ description: '`+ path: value` and `- path: value`.' }),
      }),
    ),
  })
  .openapi('DeploymentDifference', { description: 'As the API server of the cluster says.' });

export const deployBot = defineRoute({
  ...trading,
  method: 'post',
  path: '/bots/{bot_ref}/deploy',
  operationId: 'deployBot',
  summary: 'Put a version of a bot to work in a cluster',
  description:
    'A pod in the cluster trades; a server looks after it until it has ended, and goes on doing so after a crash. Each limit of `risk` must be stated in the spec, and the bot must trade and not be halted. A cluster that is a customer’s needs the feature `byoc_deployments`, too. A draft becomes active.',
  feature: 'live_trading',
  idempotent: true,
  request: {
    params: botPath,
    body: json(DeployRequest, {
      simulated: { cluster: 'trading' },
      render: { cluster: 'trading', mode: 'render' },
    }),
  },
  responses: {
    200: answer('With `render` and `dry_run`.', z.union([Rendered, Difference])),
    202: { ...answer('It is queued.', Deployed), headers: TASK_LOCATION },
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
    'The runner cancels its working orders and reads them back from the venue; then its pod and everything else in the cluster except its volume is removed. Positions do not change. The stop succeeds once all orders are known to have ended; at an exchange the pod stays, and keeps sending cancels, until then. A deployment that has not begun is canceled. A deployment that has ended does not change.',
  request: {
    params: z.strictObject({ ...botPath.shape, task_id: id(EXAMPLE_DEPLOYMENT_ID) }),
    query: z.strictObject({
      abandon: text(500).optional().openapi({
        description:
          'Reason not to wait for orders that may rest at the exchange, for example that a person has canceled them there. The deployment then ends as not verified.',
      }),
    }),
  },
  responses: { 200: answer('The task as it is now.', Task) },
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
        'Why it is not as it should be, such as `image_pull`, `crash_loop`, `namespace_missing` or `unreachable`; with the latter, the rest is what was seen last.',
    }),
    version: z.int().nullable().openapi({ description: 'Of the bot, as the cluster has it.' }),
    pods: z.array(Pod),
    observed_at: time,
  })
  .openapi('ClusterState');

const RunnerStatus = z.enum(['starting', 'trading', 'denying', 'halting', 'stopping', 'ended']);

/** Canonical JSON, by which states are hashed, takes no other texts. */
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
      verified: z.boolean().openapi({ description: 'Whether the venue says that it has ended.' }),
    }),
  )
  .max(10_000);

const KnownRunner = z
  .strictObject({
    status: RunnerStatus.nullable().openapi({ description: 'Null before its first report.' }),
    denying: z.string().nullable().openapi({ description: 'Why it places no new orders.' }),
    venue: z
      .strictObject({
        connected: z.boolean(),
        open_orders: z.int().nullable(),
        checked_at: time.nullable(),
      })
      .nullable(),
    reported_at: time.nullable(),
    epoch: z.int().openapi({ description: 'How many instances there have been.' }),
    claimed: z.boolean().openapi({ description: 'Whether one of them may trade now.' }),
    ended: z
      .strictObject({
        outcome: z.enum(['stopped', 'halted', 'failed']),
        verified: z.boolean(),
        orders: endedOrders,
      })
      .nullable(),
  })
  .openapi('Runner', { description: 'The process that trades, as it was heard of last.' });

const ProductionDeployment = z
  .strictObject({
    ...BotDeployment.shape,
    cluster: z.string(),
    namespace: z.string(),
    request: z.strictObject(request).openapi({ description: 'What was asked for.' }),
    replaces: z.string().nullable(),
    waits: z.boolean().openapi({
      description: 'Whether it waits until the deployment that it replaces has ended.',
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
          'The account with which it begins if it continues an account or its losses; null if it begins with the cash of the spec.',
      }),
    applied_at: time.nullable(),
    scaled_down_at: time
      .nullable()
      .openapi({ description: 'Since when the cluster is known to have no pod of it.' }),
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
  summary: 'Show a production deployment: its pods, and its runner',
  request: { params: z.strictObject({ ...botPath.shape, ...deploymentPath.shape }) },
  responses: { 200: answer('As it was observed last.', ProductionDeployment) },
  errors: ['not_found', 'conflict'],
});

// What a runner says.

/** What a runner may tell the log of its bot: all else there is for others to tell. */
const EVENT_KIND =
  /^(order|account|data|venue|clock)(\.[a-z_]+)+$|^control\.(denying|halted|latch_lifted|epoch_set)$|^risk\.(thresholds_set|override_(granted|ended|used))$/;

/** RFC 3339 has no other years. */
const [FIRST_TIME, LAST_TIME] = [Date.parse('0001-01-01'), Date.parse('9999-12-31')];

/** What the steps of a session are read from again. */
const barsPayload = z.strictObject({
  time,
  bars: z.record(symbol, z.tuple([z.number(), z.number(), z.number(), z.number(), z.number()])),
});

const SessionEvent = z
  .strictObject({
    kind: z.string().max(64).regex(EVENT_KIND, 'must be of a kind that a runner tells'),
    occurred_at: z
      .int()
      .min(FIRST_TIME)
      .max(LAST_TIME)
      .openapi({ description: 'Milliseconds since the Unix epoch.' }),
    payload: z.record(z.string(), z.unknown()),
  })
  .refine(({ kind, payload }) => kind !== 'control.halted' || !('scope' in payload), {
    error: 'must not say what it is about: a runner halts itself alone',
    path: ['payload'],
  })
  .refine(({ kind, payload }) => kind !== 'data.bars' || barsPayload.safeParse(payload).success, {
    error: 'must be bars',
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

/** A `SessionState`; what later runners may say beside is left out. */
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
      description:
        'From 1 for the life of the deployment: one that was recorded is not recorded again.',
    }),
    events: z.array(SessionEvent).max(512),
    made_at: z.int().optional().openapi({
      description: 'When the first of them was put on disk, milliseconds since the Unix epoch.',
    }),
    state: SessionState,
    steps: z.int().min(0).openapi({ description: 'Of bars, taken in all.' }),
  })
  .openapi('RunnerBatch');

const RunnerReport = z
  .strictObject({
    instance_id: z.uuid().openapi({ description: 'Of the process, made when it starts.' }),
    epoch: z.int().min(1).nullable().openapi({
      description: 'The claim that it holds; null asks for one.',
    }),
    status: RunnerStatus,
    denying: searchText(500).nullable(),
    database_epoch: z.int().min(1).optional().openapi({
      description:
        "The newest epoch of a server's database that the runner knows; 1 by default. A server with an older epoch stops trading until its database is adopted.",
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
          description: 'Whether open orders were read back from the venue, and there were none.',
        }),
        orders: endedOrders.openapi({ description: 'Those that were working when it was to end.' }),
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
          'Last of all: it lets go of the claim, and what comes from this instance later changes nothing of it. `failed` ends the deployment.',
      }),
  })
  .openapi('RunnerReport');

export type RunnerReport = z.infer<typeof RunnerReport>;

const share = z
  .strictObject({
    value: z.number(),
    level: z.enum(['client', 'instrument', 'trader', 'desk', 'firm']),
    subject: z.string().openapi({
      description: 'Empty where the session names nobody at that level, and may place no order.',
    }),
    version: z.int(),
    sessions: z.int().openapi({ description: 'How many share the threshold.' }),
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
      .openapi({ description: 'Number of its latches that people have lifted.' }),
    database_epoch: z.int().optional().openapi({
      description: "Epoch of the server's database, used in the ids of new orders; 1 by default.",
    }),
  })
  .openapi('RunnerControls', { description: 'What people have settled for the session.' });

const RunnerAnswer = z
  .strictObject({
    epoch: z.int().openapi({ description: 'Of the claim, to be sent with the next report.' }),
    claim_seconds: z.int().openapi({
      description:
        'How long the claim lasts from this report. After two thirds of that without an answer, a runner places no new orders.',
    }),
    report_seconds: z.int().openapi({ description: 'How often to report.' }),
    command: z.enum(['trade', 'halt', 'stop']),
    halt: z
      .strictObject({
        halt_id: z.string(),
        scope: z.enum(['bot', 'all']),
        reason: z.string(),
        by: z.string(),
      })
      .nullable(),
    recorded: z.int().openapi({ description: 'The number of the last batch that is recorded.' }),
    controls: RunnerControls,
  })
  .openapi('RunnerAnswer');

export type RunnerAnswer = z.infer<typeof RunnerAnswer>;

/** Where runners report; the body may be longer than of other requests. */
export const RUNNER_PATH = /^\/deployments\/[^/]+\/runner$/;

export const reportRunner = defineRoute({
  tags: ['Production'],
  security: runner,
  method: 'post',
  path: '/deployments/{deployment_id}/runner',
  operationId: 'reportRunner',
  summary: 'Report as the runner of a deployment, and hear what to do',
  description:
    'One instance at a time has the claim, without which none may trade: `conflict` with the reason `fenced` says that another has it, and `Retry-After` for how long. Batches are recorded whatever the bot is halted: what ends an order has to be known. A deployment that has ended is `not_found`: its runner cancels its orders and leaves.',
  request: {
    params: deploymentPath,
    body: json(RunnerReport, {
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
  responses: { 200: answer('What it is to do.', RunnerAnswer) },
  errors: ['not_authenticated', 'not_found', 'conflict', 'database_not_adopted'],
});
