import { hostname } from 'node:os';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AGENT_TOOLS, nextDue } from '../../src/bots/agent-schedule.ts';
import { archiveBot, createBot, updateBot } from '../../src/fleet/registry/bots.ts';
import { parseSpec } from '../../src/bots/parse.ts';
import { NO_USAGE, type Answerer } from '../../src/research/answering.ts';
import { listAgents, startSchedule, stopSchedule } from '../../src/research/schedules.ts';
import { TOOLS } from '../../src/research/tools.ts';
import { addToken } from '../../src/identity/tokens.ts';
import { startAgentRunner, type AgentRunner } from '../../src/server/agents.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { newTestApp, type TestApp } from '../server/in-process.ts';
import { serveHere } from '../server/running.ts';
import { mainlyOn, newTables, type TestDatabase } from '../storage/databases.ts';
import { researchDocument } from './talk.ts';
import { isAtLength } from '../length.ts';

const HOUR = 3_600_000;
const START = Date.parse('2026-01-02T03:04:05Z');
const NOTHING = { citations: [], usage: NO_USAGE, stopped_by: null } as const;

const watcher = (more: object = {}) => ({
  role: 'watcher',
  tools: ['read_bot', 'run_backtest'],
  schedule: { every: '6h', prompt: 'What has changed?' },
  ...more,
});

describe('a schedule', () => {
  it('is due only once after several missed times', () => {
    const at = (text: string): number => Date.parse(`2026-01-${text}:00Z`);
    expect(nextDue('6h', at('02T03:04'), at('02T03:04'))).toBe(at('02T09:04'));
    expect(nextDue('6h', at('02T03:04'), at('03T04:00'))).toBe(at('03T09:04'));
    expect(nextDue('day at 06:30', at('02T03:04'), at('02T03:04'))).toBe(at('02T06:30'));
    expect(nextDue('day at 06:30', at('02T06:30'), at('05T06:30'))).toBe(at('06T06:30'));
  });

  it('is validated with the spec, as are the names of tools', () => {
    const problemsOf = (agent: object) =>
      parseSpec(JSON.stringify(researchDocument('talk', { agents: [agent] })), 'bot.json').problems;
    expect(AGENT_TOOLS).toEqual(TOOLS.map(({ name }) => name));
    for (const every of ['5m', '31d', 'day at 23:59']) {
      expect(problemsOf(watcher({ schedule: { every, prompt: 'x' } }))).toEqual([]);
    }
    for (const every of ['4m', '32d', '1.5h', 'hourly', 'day at 24:00']) {
      expect(problemsOf(watcher({ schedule: { every, prompt: 'x' } }))).toMatchObject([
        { pointer: '/spec/agents/0/schedule/every', code: 'invalid_value' },
      ]);
    }
    expect(problemsOf(watcher({ tools: ['read_resluts'] }))).toMatchObject([
      { pointer: '/spec/agents/0/tools/0', suggestion: 'read_results' },
    ]);
    expect(problemsOf(watcher({ schedule: { evry: '6h', prompt: 'x' } }))).toMatchObject([
      { code: 'unknown_field', suggestion: 'every' },
    ]);
  });
});

describe.each(mainlyOn('sqlite'))('scheduled agents on %s', (kind) => {
  let database: TestDatabase;
  let storage: Storage;
  let now: number;
  /** Both use the same database. */
  let servers: TestApp[];
  let runners: AgentRunner[];
  let bearer: string;
  let answer: Answerer['answer'];
  const asked = vi.fn<Answerer['answer']>((question) => answer(question));

  beforeEach(async () => {
    database = await newTables(kind);
    storage = await openStorage(database.location);
    now = START;
    asked.mockClear();
    answer = async ({ say, prompt, tools }) => {
      say(`${prompt} With ${tools.map(({ name }) => name).join()}`);
      return NOTHING;
    };
    const identity = { storage, clock: () => now };
    const scripted = { provider: 'anthropic', model: 'm', is_language_model: true, answer: asked };
    servers = [
      await newTestApp(identity, undefined, scripted),
      await newTestApp(identity, undefined, scripted),
    ];
    runners = servers.map(({ app, services }) => startAgentRunner(app, services));
    await addAdministrator(storage, now, 'ada');
    await storage.write(async (tx) => {
      const terms = { label: 'x', scopes: ['read', 'write', 'halt'], expires_in_seconds: 3600 };
      const made = await addToken(tx, now, 'operator', 'ada', terms as never);
      bearer = `Bearer ${made.token}`;
    });
    await createBot(identity, 'operator', {
      document: researchDocument('talk', { agents: [watcher()] }),
    });
  });

  afterEach(async () => {
    await Promise.all(runners.map((runner) => runner.stop()));
    await Promise.all(servers.map((server) => server.close()));
    await storage.close();
    await database.remove();
  });

  const send = (method: string, path: string, body?: object) =>
    servers[0]!.send(method, `/bots/talk/agents${path}`, {
      headers: { authorization: bearer },
      ...(body && { body }),
    });
  const turn = (is_on: boolean) => send('POST', '/watcher/schedule', { is_on });
  const apply = (agents: readonly object[]) =>
    updateBot({ storage, clock: () => now }, 'operator', 'talk', () => true, {
      document: researchDocument('talk', { agents }),
    });
  /** Kind and payload of all events of agents. */
  const events = async () => {
    const rows = await storage.read
      .selectFrom('bot_events')
      .select(['kind', 'payload'])
      .where('kind', 'like', 'agent.%')
      .orderBy('seq')
      .execute();
    return rows.map((row) => [row.kind, JSON.parse(row.payload) as unknown]);
  };
  const poll = () => Promise.all(runners.map((runner) => runner.poll()));
  /** Advances the clock and waits until all turns have been reported. */
  const pass = async (ms: number): Promise<void> => {
    now += ms;
    await poll();
    await vi.waitFor(async () => {
      await poll();
      const open = await storage.read
        .selectFrom('agent_runs')
        .select('turn_id')
        .where('report_seq', 'is', null)
        .execute();
      expect(open).toEqual([]);
    });
  };

  it('are asked once per time by one of two servers, also after the token of their administrator expired', async () => {
    await pass(24 * HOUR);
    now = START;
    expect(await turn(true)).toMatchObject({
      status: 200,
      body: { is_on: true, next_run_at: '2026-01-02T09:04:05Z', started_by_name: 'ada' },
    });
    await pass(6 * HOUR - 1);
    expect(asked).not.toHaveBeenCalled();
    await pass(1);
    expect(asked).toHaveBeenCalledOnce();
    await pass(0);
    await pass(20 * HOUR);
    expect(asked).toHaveBeenCalledTimes(2);
    expect(asked.mock.calls[1]![0].history).toHaveLength(1);
    const text = 'What has changed? With read_bot,run_backtest';
    expect(await events()).toMatchObject([
      ['agent.schedule_started', { scopes: ['read', 'write'], by: 'administrator:ada' }],
      ['agent.reported', { role: 'watcher', cause: 'schedule', status: 'done', answer: { text } }],
      ['agent.reported', { status: 'done' }],
    ]);
    now = START;
    expect((await send('GET', '')).body).toMatchObject({
      items: [
        {
          next_run_at: '2026-01-03T09:04:05Z',
          last_report: { text, cause: 'schedule', status: 'done' },
        },
      ],
    });
    await turn(false);
    expect(await turn(false)).toMatchObject({ body: { is_on: false, stopped_reason: 'asked' } });
    await pass(99 * HOUR);
    expect(asked).toHaveBeenCalledTimes(2);
    expect(await events()).toHaveLength(4);
  });

  it('use the API as their administrator until the schedule is stopped', async () => {
    let found: unknown[] = [];
    answer = async ({ call }) => {
      found = [await call('read_bot', {})];
      await stopSchedule({ storage, clock: () => now }, 'operator', 'talk', 'watcher');
      found.push(await call('read_bot', {}));
      return NOTHING;
    };
    await turn(true);
    now += 6 * HOUR;
    await runners[0]!.poll();
    await vi.waitFor(() => expect(found).toHaveLength(2));
    expect(found).toMatchObject([
      { data: { slug: 'talk' } },
      { error: { reason: 'agent_stopped' } },
    ]);
  });

  it.each<[string, () => Promise<unknown>]>([
    ['role_gone', () => apply([])],
    ['no_schedule', () => apply([{ role: 'watcher' }])],
    [
      'bot_archived',
      () => archiveBot({ storage, clock: () => now }, 'operator', 'talk', () => true),
    ],
    ['administrator_disabled', () => set('administrators', { disabled_at: now })],
    ['revoked_token', () => set('api_tokens', { revoked_at: now })],
  ])('are stopped with the reason %s in an event', async (reason, happen) => {
    await turn(true);
    await happen();
    await pass(6 * HOUR);
    expect(asked).not.toHaveBeenCalled();
    expect((await events()).at(-1)).toMatchObject([
      'agent.schedule_stopped',
      { role: 'watcher', by: 'server', reason },
    ]);
    await pass(6 * HOUR);
    expect(await events()).toHaveLength(2);
  });

  const set = (table: 'administrators' | 'agent_schedules' | 'api_tokens', values: object) =>
    storage.write((tx) => tx.updateTable(table).set(values).execute());

  it('follow the interval and prompt of the current version', async () => {
    await turn(true);
    await apply([watcher({ schedule: { every: '15m', prompt: 'And now?' } })]);
    await pass(0);
    await pass(HOUR / 4);
    expect(asked).toHaveBeenCalledOnce();
    expect(asked.mock.calls[0]![0].prompt).toBe('And now?');
  });

  it('are asked even if the agent of another bot fails', async () => {
    const document = researchDocument('broken', { agents: [watcher()] });
    const { bot_id } = await createBot({ storage, clock: () => now }, 'operator', { document });
    const ada = { administrator_id: 'ada', token_id: null, scopes: new Set(['read'] as const) };
    await startSchedule({ storage, clock: () => now }, ada, 'broken', 'watcher');
    now += 1;
    await turn(true);
    await storage.write((tx) =>
      tx.updateTable('bot_versions').set({ document: '{' }).where('bot_id', '=', bot_id).execute(),
    );
    await pass(6 * HOUR);
    expect(asked).toHaveBeenCalledOnce();
    expect(servers.flatMap(({ log }) => log).join()).toContain('could not be run');
  });

  it('lose access when the schedule passes to another administrator', async () => {
    let found: unknown;
    answer = async ({ call }) => {
      await set('agent_schedules', { administrator_id: 'bob' });
      found = await call('read_bot', {});
      return NOTHING;
    };
    await addAdministrator(storage, now, 'bob');
    await turn(true);
    await pass(6 * HOUR);
    expect(found).toMatchObject({ error: { reason: 'agent_stopped' } });
  });

  it('can be asked now by a person, and are reported at once', async () => {
    const { body, status } = await send('POST', '/watcher/run');
    expect({ body, status }).toMatchObject({ status: 200, body: { status: 'done', number: 1 } });
    expect(await events()).toMatchObject([['agent.reported', { cause: 'person' }]]);
    expect(await send('POST', '/watchre/run')).toMatchObject({
      status: 404,
      body: { reason: 'unknown_role', remedy: 'Did you mean watcher? Its agents are watcher.' },
    });
    await apply([{ role: 'watcher' }]);
    expect(await turn(true)).toMatchObject({ status: 409, body: { reason: 'no_schedule' } });
    expect(await events()).toHaveLength(1);
  });

  it('are not asked again after their server died, and are reported as interrupted', async () => {
    await turn(true);
    answer = async ({ signal }) => {
      await new Promise((resolve) => {
        signal.addEventListener('abort', resolve);
      });
      return NOTHING;
    };
    now += 6 * HOUR;
    await runners[0]!.poll();
    await vi.waitFor(() => expect(asked).toHaveBeenCalledOnce());
    await storage.write((tx) =>
      tx
        .updateTable('chat_turns')
        .set({ worker_id: `${hostname()}/999999999/x` })
        .execute(),
    );
    await runners[1]!.poll();
    expect((await events()).at(-1)).toMatchObject([
      'agent.reported',
      { status: 'interrupted', error: { reason: 'interrupted' } },
    ]);
    await runners[1]!.poll();
    expect(asked).toHaveBeenCalledOnce();
    expect(await events()).toHaveLength(2);
  });
});

it.runIf(isAtLength)(
  'a starting server asks agents whose time came while it was down',
  async () => {
    const database = await newTables('sqlite');
    const storage = await openStorage(database.location);
    const service = { storage, clock: () => Date.now() - 7 * HOUR };
    const document = researchDocument('talk', { agents: [watcher()] });
    const { bot_id } = await createBot(service, 'operator', { document });
    await addAdministrator(storage, Date.now(), 'ada');
    const ada = { administrator_id: 'ada', token_id: null, scopes: new Set(['read'] as const) };
    await startSchedule(service, ada, 'talk', 'watcher');
    const server = await serveHere(database);
    const report = await vi.waitFor(async () => {
      const [state] = await listAgents(storage.read, bot_id);
      expect(state!.last_report).not.toBeNull();
      return state!.last_report;
    }, 4000);
    expect(report).toMatchObject({ cause: 'schedule', status: 'done' });
    await server.stop();
    await storage.close();
    await database.remove();
  },
);

async function addAdministrator(storage: Storage, now: number, name: string): Promise<void> {
  const row = { name, password_hash: '', totp_secret: '', totp_last_step: 0 };
  await storage.write((tx) =>
    tx
      .insertInto('administrators')
      .values({ ...row, administrator_id: name, created_at: now, disabled_at: null })
      .execute(),
  );
}
