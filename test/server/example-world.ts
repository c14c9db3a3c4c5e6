import { createPrivateKey, createPublicKey } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import type { DeviceKey } from '../../src/client/device-key.ts';
import { createBot, getBot, updateBot } from '../../src/fleet/registry/bots.ts';
import { appendEvents } from '../../src/events/append.ts';
import type { Decision } from '../../src/gate/decide.ts';
import { haltAll, haltBot } from '../../src/fleet/halts/halt.ts';
import { appendSession, stateEvent } from '../../src/fleet/tasks/session-record.ts';
import type { Step } from '../../src/engine/steps.ts';
import { barsEvent } from '../../src/trading/session-events.ts';
import { createContract } from '../../src/identity/contracts.ts';
import { EXAMPLE_BROWSER_SESSION_ID, EXAMPLE_PASSKEY_ID } from '../../src/api/account.ts';
import { EXAMPLE_ROLE } from '../../src/api/agents.ts';
import { exampleDocument } from '../../src/api/bots.ts';
import { EXAMPLE_DOCUMENT_ID } from '../../src/api/knowledge.ts';
import { createCustomer } from '../../src/identity/customers.ts';
import { createInstallation } from '../../src/identity/installations.ts';
import { GIVE_ACTION } from '../../src/identity/grants.ts';
import { registerSigner } from '../../src/identity/signing-keys.ts';
import { createPlan } from '../../src/identity/plans.ts';
import { REVOKE_ACTION } from '../../src/identity/revoke.ts';
import { hashSecret } from '../../src/identity/secrets.ts';
import { termsOf } from '../../src/research/knowledge/search-terms.ts';
import type { Clusters } from '../../src/deploy/kubernetes/clusters-file.ts';
import { signerOf } from '../../src/identity/signing-key.ts';
import { addToken } from '../../src/identity/tokens.ts';
import { SET_ROOT_ACTION } from '../../src/identity/published-trust.ts';
import { publicKeyId } from '../../src/lease/keys.ts';
import type { Scope } from '../../src/base/scopes.ts';
import { EXAMPLE_CHANNEL, EXAMPLE_RULE } from '../../src/api/notifications.ts';
import type { Channels } from '../../src/fleet/notifications/channels.ts';
import { addRule } from '../../src/fleet/notifications/rules.ts';
import { EXAMPLE_DEPLOYMENT_ID } from '../../src/api/runners.ts';
import { EXAMPLE_CHAT_SESSION_ID, EXAMPLE_RESEARCH_BOT } from '../../src/api/research.ts';
import { packageVersion } from '../../src/base/package-version.ts';
import { EMBEDDED } from '../../src/research/embedded.ts';
import { NO_USAGE } from '../../src/research/answering.ts';
import { beginTurn, endTurn } from '../../src/research/turns.ts';
import { EXAMPLE_SESSION_ID } from '../../src/api/replay.ts';
import { EXAMPLE_NEXT_KEY, EXAMPLE_ROOT_FINGERPRINT } from '../../src/api/root-example.ts';
import { EXAMPLE_OVERRIDE_ID } from '../../src/api/risk.ts';
import { EXAMPLE_INPUT, EXAMPLE_SEARCH_ID } from '../../src/api/searches.ts';
import { EXAMPLE_TASK_ID } from '../../src/api/tasks.ts';
import { TRADE_COLUMNS } from '../../src/backtest/run-tables.ts';
import { syntheticRun } from '../backtest/report-fixture.ts';
import { EXAMPLE_OTHER_TASK_ID } from '../../src/api/comparison.ts';
import { endTask, appendRunEvent } from '../../src/fleet/tasks/lifecycle.ts';
import { allowedToTrade, documentOn, replaceDays } from '../fleet/tasks/market.ts';
import { cheapHash } from '../identity/cheap-hash.ts';
import { newTestApp, type TestApp } from './in-process.ts';

/** Devices of the examples: an enrolled one, and one that is about to enroll. */
export const DEVICE = keyOfSeed(Buffer.alloc(32, 6));
export const NEW_DEVICE = keyOfSeed(Buffer.alloc(32, 7));

/** Key of RFC 8037, appendix A; it is retired. */
const RETIRING_KEY = keyOfSeed(
  Buffer.from('nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A', 'base64url'),
);

const PASSWORD_HASH = cheapHash('correct horse battery staple');

const LEASE_ID = '0198c0de-0000-7000-8000-00000000aaaa';

/** Action and target of the step-up, by the operation whose example needs it. */
const STEP_UP_TARGETS: Readonly<Record<string, string>> = {
  revokeLease: `lease:${LEASE_ID}`,
  revokeDeployment: 'deployment:acme-tokyo',
  deletePasskey: `passkey:${EXAMPLE_PASSKEY_ID}`,
  storeTrust: `root:${EXAMPLE_ROOT_FINGERPRINT}`,
  announceKey: `key:${publicKeyId(EXAMPLE_NEXT_KEY)}`,
  createContract: 'customer:acme',
  updateContract: 'contract:acme-2026',
  updatePlan: 'plan:pro',
  reinstateDeployment: 'deployment:acme-tokyo',
};

const STEP_UP_ACTIONS: Readonly<Record<string, string>> = {
  deletePasskey: 'identity.passkey.delete',
  storeTrust: SET_ROOT_ACTION,
  announceKey: SET_ROOT_ACTION,
  createContract: GIVE_ACTION,
  updateContract: GIVE_ACTION,
  updatePlan: GIVE_ACTION,
  reinstateDeployment: GIVE_ACTION,
};

/** A channel that accepts every notification. */
const CHANNELS: Channels = new Map([
  [EXAMPLE_CHANNEL, { name: EXAMPLE_CHANNEL, type: 'webhook', fault: null, send: async () => {} }],
]);

/** A gate that denies everything; hardly any example needs a license. */
const EXPIRED: Decision = { allowed: false, reason: 'expired', detail: 'It is over.' };
const GOOD: Decision = { allowed: true, status: 'valid' };
const LICENSED: ReadonlySet<string> = new Set(['deployBot']);

/** Token of the runner in the example. */
export const RUNNER_TOKEN = 'runner-token';

/** What examples refer to beyond the records of every world, by their operations, in this order. */
const ADDITIONS: readonly (readonly [
  operations: RegExp,
  add: (server: TestApp, operation: string) => Promise<unknown>,
])[] = [
  [/^compareTasks$/, addComparedTasks],
  [/Chat|chat|Agent/, addExampleChat],
  [
    /^(replayBot|compareBot|stopPaper|reEnableBot|getSessionChart|listSessionTrades)$/,
    (server) => addExampleSession(server),
  ],
  [/^forkBot$/, (server) => addExampleSession(server, EXAMPLE_STEPS)],
  [/^reEnableBot$/, latchExampleSession],
  [
    /^((stop|getProduction)Deployment|reportRunner|(request|verify|authorize)Override)$/,
    addExampleDeployment,
  ],
  [
    /^(request|verify|authorize)Override$/,
    (server, operation) => addExampleOverride(server, operation === 'authorizeOverride'),
  ],
  [
    /^deployBot$/,
    async ({ services: { production } }) =>
      Object.assign(production, {
        clusters: CLUSTERS,
        exchanges: { binance: { ccxt: 'binance' } },
      }),
  ],
  [
    /^(startPaper|deployBot)$/,
    ({ services: { identity } }) => {
      const document = allowedToTrade(documentOn('sma-crossover', 'SPX', '1d'));
      return updateBot(identity, 'operator', 'sma-crossover', () => true, { document });
    },
  ],
  [/^(getDocument|removeDocument|searchKnowledge)$/, addExampleDocument],
  [/Search|Input|Shards/, addExampleSearch],
  [
    /Notification/,
    ({ services: { identity } }) => {
      const rule = { name: EXAMPLE_RULE, condition: 'halted', channel: EXAMPLE_CHANNEL } as const;
      return addRule(identity, 'operator', CHANNELS, rule);
    },
  ],
  [
    /^resumeBot$/,
    ({ services: { tasks, log } }) =>
      haltBot({ ...tasks, log }, 'operator', 'sma-crossover', 'a test'),
  ],
  [
    /^resumeAllBots$/,
    ({ services: { tasks, log } }) => haltAll({ ...tasks, log }, 'operator', 'a test'),
  ],
];

/** Whether the examples of the operation need a world that others do not. */
export const hasOwnWorld = (operation: string): boolean =>
  ADDITIONS.some(([operations]) => operations.test(operation));

export interface ExampleWorld extends TestApp {
  readonly token: (...scopes: Scope[]) => Promise<string>;
}

/** A server with everything that the examples in `src/api` refer to. */
export async function newExampleWorld(operation: string): Promise<ExampleWorld> {
  const signer = signerOf(keyOfSeed(Buffer.alloc(32, 5)).privateKey);
  const license = LICENSED.has(operation) ? GOOD : EXPIRED;
  const server = await newTestApp({ signer }, { check: () => license }, EMBEDDED, CHANNELS);
  const { now } = server;
  const { identity } = server.services;
  const { storage } = identity;
  await registerSigner(identity, signerOf(RETIRING_KEY.privateKey));
  await registerSigner(identity, signer);

  await createCustomer(identity, 'operator', { customer_id: 'acme', name: 'Acme Trading' });
  const plan = { plan_id: 'pro', name: 'Pro', entitlements: ['live_trading'] };
  await createPlan(identity, 'operator', plan);
  const contract = { contract_id: 'acme-2026', customer_id: 'acme', plan_id: 'pro' };
  await createContract(identity, 'operator', { ...contract, ends_at: Date.UTC(2027, 0) });
  const installation = { deployment_id: 'acme-tokyo', contract_id: 'acme-2026', name: 'Tokyo' };
  await createInstallation(identity, 'operator', installation);

  await createBot(identity, 'operator', { document: exampleDocument('sma-crossover', 10) });
  const changed = { document: exampleDocument('sma-crossover', 15) };
  await updateBot(identity, 'operator', 'sma-crossover', () => true, changed);
  await addExampleTask(server);
  for (const [operations, add] of ADDITIONS) {
    if (operations.test(operation)) await add(server, operation);
  }
  // Closing the server ends the streams of examples.
  server.stop();

  await storage.write(async (tx) => {
    const ada = {
      administrator_id: 'ada',
      name: 'ada',
      password_hash: PASSWORD_HASH,
      created_at: now,
    };
    await tx
      .insertInto('administrators')
      .values({ ...ada, totp_secret: 'JBSWY3DPEHPK3PXP', totp_last_step: 0, disabled_at: null })
      .execute();
    for (const last of ['1', '2']) {
      const code_hash = hashSecret(last.padStart(28, '0'));
      await tx
        .insertInto('recovery_codes')
        .values({ code_hash, administrator_id: 'ada', used_at: null })
        .execute();
    }
    await tx
      .insertInto('api_tokens')
      .values({
        token_id: '0198c0de-0000-7000-8000-00000000bbbb',
        administrator_id: 'ada',
        label: 'CI',
        secret_hash: hashSecret('of the example'),
        scopes: '["license"]',
        created_at: now,
        expires_at: now + 86_400_000,
        revoked_at: null,
      })
      .execute();
    await tx
      .insertInto('step_ups')
      .values({
        token_hash: hashSecret('step-up-token'),
        administrator_id: 'ada',
        action: STEP_UP_ACTIONS[operation] ?? REVOKE_ACTION,
        target: STEP_UP_TARGETS[operation] ?? '',
        expires_at: now + 300_000,
        used_at: null,
      })
      .execute();
    await tx
      .insertInto('sessions')
      .values({
        session_id: EXAMPLE_BROWSER_SESSION_ID,
        administrator_id: 'ada',
        secret_hash: hashSecret('of the example'),
        csrf_token: 'token',
        signed_in_with: 'password',
        user_agent: 'Firefox',
        address: null,
        created_at: now,
        seen_at: now,
        expires_at: now + 3_600_000,
      })
      .execute();
    await tx
      .insertInto('passkeys')
      .values({
        passkey_id: EXAMPLE_PASSKEY_ID,
        administrator_id: 'ada',
        credential_id: 'AAAA',
        public_key: 'AAAA',
        counter: 0,
        transports: '[]',
        site: 'licenses.example',
        name: 'Phone',
        created_at: now,
        last_used_at: null,
      })
      .execute();
    await tx
      .insertInto('enrolment_codes')
      .values({
        code_hash: hashSecret('ABCDEFGHJKMNPQRSTVWXYZ234567'),
        deployment_id: 'acme-tokyo',
        created_by: 'administrator:ada',
        created_at: now,
        expires_at: now + 600_000,
        used_at: null,
        device_id: null,
      })
      .execute();
    await tx
      .insertInto('devices')
      .values({
        device_id: DEVICE.device_id,
        deployment_id: 'acme-tokyo',
        x: DEVICE.x,
        name: 'trading-0',
        enrolled_at: now,
        replaces: null,
        first_used_at: null,
        revoked_at: null,
        revoked_by: null,
        revoked_reason: null,
      })
      .execute();
    await tx
      .insertInto('license_leases')
      .values({
        lease_id: LEASE_ID,
        deployment_id: 'acme-tokyo',
        customer_id: 'acme',
        contract_id: 'acme-2026',
        lineage_id: LEASE_ID,
        previous_lease_id: null,
        renewal_id: null,
        device_id: null,
        issued_by: 'administrator:ada',
        public_key_id: signer.publicKeyId,
        entitlements: '["live_trading"]',
        issued_at: now,
        expires_at: now + 7 * 86_400_000,
        grace_ends_at: now + 10 * 86_400_000,
        revoked_at: null,
        revoked_by: null,
        revoked_reason: null,
      })
      .execute();
  });
  return Object.assign(server, {
    token: async (...scopes: Scope[]) => {
      const terms = { label: 'example', scopes, expires_in_seconds: 365 * 86_400 };
      const made = await storage.write((tx) => addToken(tx, now, 'operator', 'ada', terms));
      return made.token;
    },
  });
}

/** A finished backtest, and a dataset that is only shown. */
async function addExampleTask({ services, now }: TestApp): Promise<void> {
  const { storage, catalogueDir } = services.tasks;
  const folder = join(catalogueDir, 'SPX');
  await mkdir(folder, { recursive: true });
  const manifest = {
    schema: 'service-local/dataset/v1',
    symbol: 'SPX',
    timeframe: '1d',
    rows: 1,
    from: '2020-01-02',
    to: '2020-01-02',
    sha256: '0'.repeat(64),
    origin: 'spx.csv',
    imported_at: '2026-01-02T03:04:05Z',
    columns: ['time', 'close'],
  };
  await writeFile(join(folder, 'manifest.json'), JSON.stringify(manifest));
  await storage.write(async (tx) => {
    const { bot_id } = await getBot(tx, 'sma-crossover');
    const place = { task_id: EXAMPLE_TASK_ID, bot_id, version: 1, created_at: now, ended_at: now };
    const deployment_id = '0198c0de-0000-7000-8000-00000000eeee';
    const ended = { ...place, deployment_id, status: 'success' } as const;
    await tx
      .insertInto('bot_deployments')
      .values({ ...ended, target: 'backtest', result_summary: '{}' })
      .execute();
    await tx
      .insertInto('tasks')
      .values({
        ...ended,
        kind: 'backtest',
        input: '{}',
        progress_done: 1,
        progress_total: 1,
        result: '{}',
        error: null,
        attempts: 1,
        worker_id: null,
        heartbeat_at: null,
        needs_level: 1,
        cancel_requested_at: null,
        created_by: 'administrator:ada',
        started_at: now,
      })
      .execute();
    const data = gzipSync('time,equity,drawdown\n').toString('base64');
    await tx
      .insertInto('task_files')
      .values({ task_id: EXAMPLE_TASK_ID, name: 'equity.csv', place: 0, data })
      .execute();
  });
}

/** Replaces the example task by one that can be compared, and adds another. */
async function addComparedTasks({ services }: TestApp): Promise<void> {
  const { summary } = syntheticRun({ steps: 10 });
  const { storage } = services.tasks;
  const { from, to } = summary.window;
  const files = {
    'equity.csv': `time,equity,drawdown\n${from},100,0\n${to},110,0\n`,
    'trades.csv': `${TRADE_COLUMNS.join()}\n`,
  };
  const result = JSON.stringify({ ...summary, files: Object.keys(files) });
  await storage.write(async (tx) => {
    await tx.deleteFrom('task_files').where('task_id', '=', EXAMPLE_TASK_ID).execute();
    const row = await tx.selectFrom('tasks').selectAll().executeTakeFirstOrThrow();
    const run = await tx.selectFrom('bot_deployments').selectAll().executeTakeFirstOrThrow();
    const other = { task_id: EXAMPLE_OTHER_TASK_ID, deployment_id: EXAMPLE_OTHER_TASK_ID };
    await tx
      .insertInto('bot_deployments')
      .values({ ...run, ...other })
      .execute();
    await tx
      .insertInto('tasks')
      .values({ ...row, ...other })
      .execute();
    await tx.updateTable('tasks').set({ result }).execute();
    for (const task_id of [EXAMPLE_TASK_ID, EXAMPLE_OTHER_TASK_ID]) {
      for (const [name, text] of Object.entries(files)) {
        const data = gzipSync(text).toString('base64');
        await tx.insertInto('task_files').values({ task_id, name, place: 0, data }).execute();
      }
    }
  });
}

/** A search with an input and without shards. */
async function addExampleSearch({ services, now }: TestApp): Promise<void> {
  await services.tasks.storage.write(async (tx) => {
    const search = { search_id: EXAMPLE_SEARCH_ID, digest: 'a'.repeat(64), title: 'sweep' };
    const times = { created_at: now, used_at: now, ended_count: 0, traceparent: null };
    await tx
      .insertInto('searches')
      .values({ ...search, package: packageVersion(), created_by: 'administrator:ada', ...times })
      .execute();
    const part = { digest: EXAMPLE_INPUT, place: 0, parts: 1, data: 'AAAA' };
    await tx
      .insertInto('search_inputs')
      .values({ search_id: EXAMPLE_SEARCH_ID, ...part })
      .execute();
  });
}

/** A research bot with a finished conversation. */
async function addExampleChat({ services }: TestApp): Promise<void> {
  const { identity, chat } = services;
  const document = exampleDocument(EXAMPLE_RESEARCH_BOT, 10);
  const schedule = { every: 'day at 06:30', prompt: 'How are you?' };
  const agents = [{ role: EXAMPLE_ROLE, schedule }];
  const spec = { ...(document['spec'] as object), kind: 'research', agents };
  await createBot(identity, 'operator', { document: { ...document, spec } });
  const by = 'administrator:ada';
  const turn = await beginTurn(chat, by, EXAMPLE_RESEARCH_BOT, { prompt: 'How are you?' });
  const session_id = EXAMPLE_CHAT_SESSION_ID;
  await identity.storage.write(async (tx) => {
    const session = await tx.selectFrom('chat_sessions').selectAll().executeTakeFirstOrThrow();
    await tx
      .insertInto('chat_sessions')
      .values({ ...session, session_id })
      .execute();
    await tx.updateTable('chat_turns').set({ session_id }).execute();
    await tx.deleteFrom('chat_sessions').where('session_id', '<>', session_id).execute();
  });
  const record = { citations: [], tool_calls: [], usage: NO_USAGE, stopped_by: null, error: null };
  await endTurn(chat, turn, 'done', 'I am no language model.', record);
}

const EXAMPLE_STEPS: readonly Step[] = [0, 1, 2].map((day) => ({
  time: Date.UTC(2000, 0, 1 + day),
  bars: { SPX: { open: 100, high: 102, low: 99, close: 101, volume: 1000 } },
}));

async function latchExampleSession({ services, now }: TestApp): Promise<void> {
  await services.tasks.storage.write(async (tx) => {
    const { bot_id } = await getBot(tx, 'sma-crossover');
    const payload = { symbol: 'SPX', side: 'buy', count: 5, seconds: 60 };
    await appendEvents(tx, bot_id, now, [
      {
        kind: 'account.latched',
        version: 1,
        run_id: EXAMPLE_SESSION_ID,
        occurred_at: now,
        payload,
      },
    ]);
  });
}

/** An ended paper session over `steps`, and data to compare it with. */
async function addExampleSession(
  { services, now }: TestApp,
  steps: readonly Step[] = [],
): Promise<void> {
  const { storage, catalogueDir } = services.tasks;
  await replaceDays(catalogueDir, (rows) => rows);
  await storage.write(async (tx) => {
    const { bot_id } = await getBot(tx, 'sma-crossover');
    const deployment_id = EXAMPLE_SESSION_ID;
    const place = { task_id: EXAMPLE_SESSION_ID, bot_id, version: 1, created_at: now };
    const open = { ...place, deployment_id, ended_at: null, status: 'pending' } as const;
    await tx
      .insertInto('bot_deployments')
      .values({ ...open, target: 'paper', result_summary: null })
      .execute();
    await tx
      .insertInto('tasks')
      .values({
        ...open,
        status: 'queued',
        kind: 'paper',
        input: '{"speed":"max"}',
        progress_done: 0,
        progress_total: null,
        result: null,
        error: null,
        attempts: 0,
        worker_id: null,
        heartbeat_at: null,
        needs_level: 1,
        cancel_requested_at: null,
        created_by: 'administrator:ada',
        started_at: null,
      })
      .execute();
    await appendRunEvent(tx, { ...place, deployment_id }, now, 'run.queued', { target: 'paper' });
    const { event_seq: first_seq } = await tx
      .selectFrom('bots')
      .select('event_seq')
      .where('bot_id', '=', bot_id)
      .executeTakeFirstOrThrow();
    const counts = { batches: 0, steps: 0, failures: 0, state: '{}', recorded_at: now };
    await tx
      .insertInto('trading_sessions')
      .values({
        task_id: EXAMPLE_SESSION_ID,
        bot_id,
        first_seq,
        ...counts,
        stop_requested_at: null,
        subjects: null,
        latches_lifted: 0,
      })
      .execute();
    const account = { cash: 1000, equity: 1000, positions: {}, working: [] };
    const state = { status: 'running', time: null, seq: 0, ...account } as const;
    const task = { ...place, deployment_id };
    const recorded = [...steps.map(barsEvent), stateEvent(task, state, now)];
    await appendSession(tx, task, now, recorded);
    const outcome = { status: 'success', result: '{}', summary: {} } as const;
    await endTask(tx, { ...open, kind: 'paper' }, now, outcome);
  });
}

const CLUSTERS: Clusters = {
  trading: {
    in_cluster: true,
    owner: 'own',
    namespace: 'bots',
    image: 'registry.example/service-local:1',
    control_url: 'https://service-local.example',
  },
};

async function addExampleOverride({ services, now }: TestApp, isVerified: boolean): Promise<void> {
  await services.tasks.storage.write(async (tx) => {
    const { bot_id } = await getBot(tx, 'sma-crossover');
    const order = { symbol: 'SPX', side: 'sell', max_quantity: 500, worst_price: null } as const;
    await tx
      .insertInto('overrides')
      .values({
        override_id: EXAMPLE_OVERRIDE_ID,
        bot_id,
        run_id: EXAMPLE_DEPLOYMENT_ID,
        ...order,
        controls: '["max_order_qty"]',
        reason: 'a test',
        requested_by: 'administrator:grace',
        requested_at: now,
        expires_at: now + 60_000,
        verified_by: isVerified ? 'administrator:alan' : null,
        verified_at: isVerified ? now : null,
        verify_reason: isVerified ? 'a test' : null,
        authorized_by: null,
        authorized_at: null,
        authorize_reason: null,
        used_at: null,
        used_order: null,
      })
      .execute();
  });
}

/** A deployment that a runner may report for, before its controller starts. */
async function addExampleDeployment({ services, now }: TestApp): Promise<void> {
  await services.tasks.storage.write(async (tx) => {
    const { bot_id } = await getBot(tx, 'sma-crossover');
    const deployment_id = EXAMPLE_DEPLOYMENT_ID;
    const task_id = EXAMPLE_DEPLOYMENT_ID;
    const place = { task_id, bot_id, version: 1, created_at: now, deployment_id, ended_at: null };
    await tx
      .insertInto('bot_deployments')
      .values({ ...place, status: 'pending', target: 'k8s', result_summary: null })
      .execute();
    await tx
      .insertInto('tasks')
      .values({
        ...place,
        status: 'queued',
        kind: 'production',
        input: '{"production":{"cluster":"trading"}}',
        progress_done: 0,
        progress_total: null,
        result: null,
        error: null,
        attempts: 0,
        worker_id: null,
        heartbeat_at: null,
        needs_level: 1,
        cancel_requested_at: null,
        created_by: 'administrator:ada',
        started_at: null,
      })
      .execute();
    const { seq: first_seq } = await appendRunEvent(tx, place, now, 'run.queued', {
      target: 'k8s',
    });
    const state = { status: 'running', time: null, seq: 0, cash: 0, equity: 0 };
    await tx
      .insertInto('trading_sessions')
      .values({
        task_id,
        bot_id,
        first_seq,
        batches: 0,
        steps: 0,
        failures: 0,
        state: JSON.stringify({ ...state, positions: {}, working: [] }),
        recorded_at: now,
        stop_requested_at: null,
        subjects: null,
        latches_lifted: 0,
      })
      .execute();
    const nowhere = { opening: null, begun_at: null, token_applied_at: null, applied_at: null };
    await tx
      .insertInto('production_deployments')
      .values({
        deployment_id,
        bot_id,
        cluster: 'trading',
        namespace: 'bots',
        plan: '{}',
        replaces: null,
        waits: 0,
        ...nowhere,
        scaled_down_at: null,
        cluster_state: null,
      })
      .execute();
    const nobody = { epoch: 0, instance_id: null, claimed_until: 0, reported_at: null };
    const token_hash = hashSecret(RUNNER_TOKEN);
    await tx
      .insertInto('runners')
      .values({ deployment_id, token_hash, ...nobody, report: null, ended: null, version: null })
      .execute();
  });
}

async function addExampleDocument({ services, now }: TestApp): Promise<void> {
  const text = 'The drawdown has a limit.';
  const place = { document_id: EXAMPLE_DOCUMENT_ID, text };
  await services.identity.storage.write(async (tx) => {
    await tx
      .insertInto('knowledge_documents')
      .values({
        ...place,
        name: 'notes/risk.md',
        title: 'Risk',
        revision: 1,
        sha256: '0'.repeat(64),
        bytes: text.length,
        lines: 1,
        passages: 1,
        added_at: now,
        added_by: 'administrator:ada',
      })
      .execute();
    const lines = { first_line: 1, last_line: 1 };
    await tx
      .insertInto('knowledge_passages')
      .values({ ...place, number: 1, ordinal: 1, heading: '[]', ...lines, terms: termsOf(text) })
      .execute();
  });
}

/** Wraps the 32 bytes of an Ed25519 key as PKCS#8 (RFC 8410). */
function keyOfSeed(seed: Buffer): DeviceKey {
  const prefix = Buffer.from('302e020100300506032b657004220420', 'hex');
  const key = Buffer.concat([prefix, seed]);
  const privateKey = createPrivateKey({ key, format: 'der', type: 'pkcs8' });
  const x = createPublicKey(privateKey).export({ format: 'jwk' }).x!;
  return { device_id: publicKeyId(x), x, privateKey };
}
