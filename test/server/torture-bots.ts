import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'undici';
import { seededRandom } from '../../src/engine/random.ts';
import { verifyEvents } from '../../src/events/verify-events.ts';
import type { BotState } from '../../src/api/bot-state.ts';
import type { Task } from '../../src/api/tasks.ts';
import type { Db } from '../../src/storage/tables.ts';
import type { SessionState } from '../../src/events/session-state.ts';
import type { TestDatabase } from '../storage/databases.ts';
import { documentOn } from '../fleet/tasks/market.ts';
import { addTrader, tradingDocument } from './trader.ts';
import { must, mustEqual, using, type Reply } from './torture.ts';
import { startServer, startWorker, type RunningServer, type RunningWorker } from './running.ts';

export interface BotTorturePlan {
  readonly rounds: number;
  /** Number of servers on one database; more than one need PostgreSQL. */
  readonly servers: number;
  /** Number of workers; with any, servers leave all tasks to them. */
  readonly workers: number;
  /** Seed of what is killed and when, and of the requests. */
  readonly seed: number;
  /** Directory with `SPX` (days) and `LONG` (minutes). */
  readonly catalogueDir: string;
}

/** Counts of a successful run; a loss throws instead. */
export interface BotTortureReport {
  /** Acknowledged requests. */
  readonly acknowledged: Readonly<Record<Deed, number>>;
  /** Requests whose response was cut off by a kill. */
  readonly cutOff: number;
  /** Undisturbed sessions, all of which had the same events as without a crash. */
  readonly sessionsCompared: number;
  /** Restarts of these sessions by any worker. */
  readonly sessionsMoved: number;
  readonly events: number;
  readonly killed: number;
  /** Longest wait for an expected outcome, ms. */
  readonly waits: Readonly<Record<string, number>>;
}

type Deed =
  | 'create'
  | 'update'
  | 'backtest'
  | 'start'
  | 'stop'
  | 'halt'
  | 'haltAll'
  | 'resume'
  | 'end';

/** Kills happen after at most this number of acknowledged requests plus a random delay. */
const MOST_DEEDS = 40;
const MOMENT_MS = 30;
/** Time for which the surviving processes continue, ms. */
const AFTER_KILL_MS = 200;
const PAUSE_MS = 15;
/** Limit for outcomes without further requests, ms. */
const PATIENCE_MS = 60_000;
/** One in this number of rounds halts all bots. */
const HALT_ALL_EVERY = 5;

/** Speed: 300 days in 3 seconds. */
const PACED = 86_400 * 100;

/** A session with a known outcome. */
interface Kind {
  readonly symbol: 'SPX' | 'LONG';
  readonly timeframe: '1d' | '1m';
  readonly fast: number;
  readonly speed: number | 'max';
}

const KINDS: readonly Kind[] = [
  { symbol: 'LONG', timeframe: '1m', fast: 1, speed: 'max' },
  { symbol: 'SPX', timeframe: '1d', fast: 1, speed: PACED },
];

interface Lone {
  readonly task_id: string;
  readonly kind: Kind;
}

interface Process {
  readonly running: RunningServer | RunningWorker;
  readonly pool: Pool | undefined;
  isKilled: boolean;
}

/** A request that can be repeated with the same effect. */
interface Once {
  readonly path: string;
  readonly body: object;
  readonly key: string;
}

/** A bot of a round, and its known state. */
interface Shared {
  readonly slug: string;
  /** Hashes of acknowledged versions, by number. */
  readonly versions: Map<number, string>;
  /** Number of versions requested without a response. */
  cutOff: number;
}

/** A bot that is halted and resumed, one request at a time. */
interface Traded {
  readonly slug: string;
  /** The halt in force; undefined after a request that was cut off. */
  halt: string | null | undefined;
}

/**
 * Puts servers and workers under load, kills some of them with SIGKILL at a random moment, restarts
 * them, and checks the database and responses against everything acknowledged, in each round.
 *
 * @param database an empty database.
 * @throws Error that describes what was lost, duplicated or not stopped.
 */
export async function tortureBots(
  database: TestDatabase,
  plan: BotTorturePlan,
  onRound: (round: number) => void = () => {},
): Promise<BotTortureReport> {
  const authorization = await using(database, (storage) => addTrader(storage, Date.now()));
  const run = new BotTorture(database, plan, authorization);
  let round = 0;
  try {
    await run.start();
    await run.learn();
    for (round = 1; round <= plan.rounds; round += 1) {
      await run.round(round);
      onRound(round);
    }
    return await run.end();
  } catch (error) {
    throw new Error(`round ${round}: ${(error as Error).message}`, { cause: error });
  } finally {
    await run.stop();
  }
}

class BotTorture {
  readonly #database: TestDatabase;
  readonly #plan: BotTorturePlan;
  readonly #authorization: string;
  readonly #args: readonly string[];
  readonly #random: () => number;
  readonly #servers: Process[] = [];
  readonly #workers: Process[] = [];
  #isLoaded = false;
  #onDeed = (): void => {};

  readonly #acknowledged: Record<Deed, number> = {
    create: 0,
    update: 0,
    backtest: 0,
    start: 0,
    stop: 0,
    halt: 0,
    haltAll: 0,
    resume: 0,
    end: 0,
  };
  #cutOff = 0;
  #sessionsCompared = 0;
  #sessionsMoved = 0;
  #killed = 0;
  readonly #waits: Record<string, number> = {};

  /** Outcome of undisturbed sessions without a crash. */
  readonly #hashes = new Map<Kind, string>();
  #lones: Lone[] = [];
  /** The newest ones, in the order of their kinds. */
  #newest: readonly Lone[] = [];
  /** All acknowledged tasks. */
  readonly #tasks = new Set<string>();
  /** Number of task requests with a key by slug of the bot; each key must have one task. */
  readonly #started = new Map<string, number>();
  #undone: Once[] = [];
  #shared: Shared[] = [];
  #traded: Traded[] = [];
  readonly #halted: string[] = [];
  /** Tasks that have ended, with their outcome. */
  readonly #ends = new Map<string, string>();
  readonly #stopped: string[] = [];
  readonly #snapshots: { readonly slug: string; readonly seq: number; readonly hash: string }[] =
    [];
  /** Last verified event of each bot. */
  readonly #verified = new Map<string, number>();

  constructor(database: TestDatabase, plan: BotTorturePlan, authorization: string) {
    this.#database = database;
    this.#plan = plan;
    this.#authorization = authorization;
    this.#args = ['--catalogue-dir', plan.catalogueDir, '--workers', '2'];
    this.#random = seededRandom(plan.seed);
  }

  async start(): Promise<void> {
    const { servers, workers } = this.#plan;
    const missing = (all: number, running: readonly Process[]): readonly undefined[] =>
      Array.from({ length: all - running.length });
    await Promise.all([
      ...missing(servers, this.#servers).map(() => this.#startServer()),
      ...missing(workers, this.#workers).map(() => this.#startWorker()),
    ]);
  }

  async #startServer(): Promise<void> {
    const leaves = this.#plan.workers > 0 ? ['--server-tasks', 'false'] : [];
    const running = await startServer(this.#database, [...this.#args, ...leaves]);
    const pool = new Pool(running.url, { connections: 64 });
    this.#servers.push({ running, pool, isKilled: false });
  }

  async #startWorker(): Promise<void> {
    const running = await startWorker(this.#database, this.#args);
    this.#workers.push({ running, pool: undefined, isKilled: false });
  }

  async stop(): Promise<void> {
    for (const process of [...this.#servers, ...this.#workers]) await this.#kill(process);
  }

  async #kill(process: Process): Promise<void> {
    for (const list of [this.#servers, this.#workers]) {
      if (list.includes(process)) list.splice(list.indexOf(process), 1);
    }
    process.isKilled = true;
    await process.running.kill();
    await process.pool?.destroy();
  }

  /** Computes the outcome of sessions while nothing is killed. */
  async learn(): Promise<void> {
    for (const [i, kind] of KINDS.entries()) {
      const slug = `known-${i}`;
      must(await this.#create(slug, kind), 201);
      const reply = await this.#send('POST', `/bots/${slug}/paper/start`, { speed: 'max' });
      const { task_id } = must(reply, 202) as { task_id: string };
      await this.#until(async () => (await this.#taskStatus(task_id)) === 'success', 'sessions');
      this.#hashes.set(kind, await this.#hashOf(task_id));
    }
  }

  async round(number: number): Promise<void> {
    await this.#loadAndKill(number);
    await this.start();
    await this.#repeat();
    await using(this.#database, async ({ read }) => this.#check(read));
  }

  /** Waits for all sessions to end, and compares their outcome. */
  async end(): Promise<BotTortureReport> {
    for (const traded of this.#traded) await this.#resume(traded);
    return using(this.#database, async ({ read }) => {
      await this.#until(async () => (await openTasks(read)) === 0, 'tasks that do not end');
      await this.#check(read);
      mustEqual('sessions that have not ended', this.#lones.length, 0);
      await mustHaveEndedWell(read);
      let events = 0;
      for (const seq of this.#verified.values()) events += seq;
      return {
        acknowledged: this.#acknowledged,
        cutOff: this.#cutOff,
        sessionsCompared: this.#sessionsCompared,
        sessionsMoved: this.#sessionsMoved,
        events,
        killed: this.#killed,
        waits: this.#waits,
      };
    });
  }

  // Clients: each continues until the load ends or a kill cuts off a response.

  async #loadAndKill(round: number): Promise<void> {
    await this.#leaveAlone(round);
    this.#isLoaded = true;
    const enough = Promise.withResolvers<void>();
    let left = 1 + Math.floor(this.#random() * MOST_DEEDS);
    this.#onDeed = () => {
      left -= 1;
      if (left === 0) enough.resolve();
    };
    this.#shared = [];
    this.#traded = this.#traded.filter(({ halt }) => halt !== null);
    const load = Promise.all([
      this.#keepCreating(round),
      this.#keepUpdating(round),
      this.#keepBacktesting(round),
      this.#keepTrading(round),
      round % HALT_ALL_EVERY === 0 && this.#haltAll(),
    ]);
    // Awaited below; without a handler, Node would report an unhandled rejection.
    load.catch(() => {});
    await Promise.race([Promise.all([enough.promise, this.#inMidst(round)]), load]);
    await sleep(this.#random() * MOMENT_MS);
    const all = [...this.#servers, ...this.#workers];
    const victims = all.filter(() => this.#random() < 0.5);
    if (victims.length === 0) victims.push(this.#anyOf(all));
    await Promise.all(victims.map((victim) => this.#kill(victim)));
    this.#killed += victims.length;
    if (victims.length < all.length) await sleep(AFTER_KILL_MS);
    this.#isLoaded = false;
    await load;
  }

  async #keepCreating(round: number): Promise<void> {
    for (let i = 0; this.#isLoaded; i += 1) {
      const body = { document: documentOn(`made-${round}-${i}`, 'SPX', '1d') };
      if ((await this.#once('create', '/bots', body, 201)) === undefined) return;
      await sleep(PAUSE_MS);
    }
  }

  /** Sends two requests at a time: one fails, or takes effect after the other. */
  async #keepUpdating(round: number): Promise<void> {
    const shared: Shared = { slug: `shared-${round}`, versions: new Map(), cutOff: 0 };
    const made = await this.#create(shared.slug, KINDS[0]!);
    if (made === undefined) return;
    shared.versions.set(1, must(made, 201)['version_hash'] as string);
    this.#shared.push(shared);
    await Promise.all([1, 2].map(() => this.#keepUpdatingOne(shared)));
  }

  async #keepUpdatingOne(shared: Shared): Promise<void> {
    const { slug, versions } = shared;
    while (this.#isLoaded) {
      const seen = await this.#send('GET', `/bots/${slug}`);
      if (seen === undefined) return;
      must(seen, 200);
      const name = randomUUID();
      const document = { ...documentOn(slug, 'LONG', '1m'), metadata: { name, slug } };
      const reply = await this.#send(
        'PUT',
        `/bots/${slug}`,
        { document },
        { 'if-match': seen.tag },
      );
      if (reply === undefined) {
        shared.cutOff += 1;
        this.#cutOff += 1;
        return;
      }
      if (reply.status === 412) continue;
      const { current_version, version_hash } = must(reply, 200);
      if (versions.has(current_version as number)) throw new Error(`${slug}: two won a version`);
      versions.set(current_version as number, version_hash as string);
      this.#count('update');
      await this.#snap(slug);
      await sleep(PAUSE_MS);
    }
  }

  async #snap(slug: string): Promise<void> {
    const reply = await this.#send('GET', `/bots/${slug}/state/snapshot`);
    if (reply === undefined) return;
    const { seq, state_hash } = must(reply, 200);
    this.#snapshots.push({ slug, seq: seq as number, hash: state_hash as string });
  }

  async #keepBacktesting(round: number): Promise<void> {
    const slug = `tested-${round}`;
    if ((await this.#create(slug, KINDS[0]!)) === undefined) return;
    while (this.#isLoaded) {
      const reply = await this.#once('backtest', `/bots/${slug}/backtest`, {}, 202);
      if (reply === undefined) return;
      await this.#watch(reply['task_id'] as string);
      // Each uses a thread, and most of the CPU.
      await sleep(20 * PAUSE_MS);
    }
  }

  /** Polls a task until it or the load has ended. */
  async #watch(task_id: string): Promise<void> {
    while (this.#isLoaded) {
      const reply = await this.#send('GET', `/tasks/${task_id}`);
      if (reply === undefined) return;
      const { status, ended_at } = must(reply, 200);
      if (ended_at !== null) {
        this.#ends.set(task_id, status as string);
        this.#count('end');
        return;
      }
      await sleep(PAUSE_MS);
    }
  }

  /** Sessions that are stopped and halted. */
  async #keepTrading(round: number): Promise<void> {
    const traded: Traded = { slug: `traded-${round}`, halt: null };
    if ((await this.#create(traded.slug, KINDS[1]!)) === undefined) return;
    this.#traded.push(traded);
    await Promise.all([
      this.#keepStarting(traded, PACED),
      this.#keepStarting(traded, 'max'),
      this.#keepHalting(traded),
    ]);
  }

  async #keepStarting({ slug }: Traded, speed: Kind['speed']): Promise<void> {
    while (this.#isLoaded) {
      const reply = await this.#once('start', `/bots/${slug}/paper/start`, { speed }, 202);
      if (reply === undefined) return;
      const task_id = reply['task_id'] as string | undefined;
      if (task_id === undefined) {
        await sleep(PAUSE_MS);
        continue;
      }
      await sleep(this.#random() * 200);
      if (this.#random() < 0.3) await this.#watch(task_id);
      const stopped = await this.#send('POST', `/bots/${slug}/paper/stop/${task_id}`);
      if (stopped === undefined) return;
      must(stopped, 200);
      this.#stopped.push(task_id);
      this.#count('stop');
    }
  }

  async #keepHalting(traded: Traded): Promise<void> {
    while (this.#isLoaded) {
      await sleep(this.#random() * 300);
      if (!this.#isLoaded || !(await this.#halt(traded))) return;
      await sleep(this.#random() * 100);
      // Some last until after the kill.
      if (this.#random() < 0.3 || !this.#isLoaded || !(await this.#resume(traded))) return;
    }
  }

  async #halt(traded: Traded): Promise<boolean> {
    traded.halt = undefined;
    const reply = await this.#send('POST', `/bots/${traded.slug}/halt`, { reason: 'torture' });
    if (reply === undefined) {
      this.#cutOff += 1;
      return false;
    }
    this.#mustBeVerified(reply);
    traded.halt = reply.json['halt_id'] as string;
    this.#halted.push(traded.halt);
    this.#count('halt');
    return true;
  }

  #mustBeVerified(reply: Reply): void {
    const { verified, deployments } = must(reply, 200) as unknown as {
      readonly verified: boolean;
      readonly deployments: readonly { readonly task_id: string; readonly verified: boolean }[];
    };
    if (!verified) throw new Error(`a halt was answered with 200 and not verified: ${reply.text}`);
    for (const { task_id } of deployments) this.#ends.set(task_id, 'canceled');
  }

  async #resume(traded: Traded): Promise<boolean> {
    const { halt } = traded;
    if (halt === null) return true;
    traded.halt = undefined;
    const reply = await this.#send('POST', `/bots/${traded.slug}/resume`, { reason: 'torture' });
    if (reply === undefined) {
      this.#cutOff += 1;
      return false;
    }
    // Not while all bots are halted.
    if (reply.json['reason'] === 'halted') {
      traded.halt = halt;
      return true;
    }
    // Unknown after a cut-off response.
    if (halt === undefined && reply.status === 409) must(reply, 409, 'conflict', 'not_halted');
    else must(reply, 200);
    traded.halt = null;
    this.#count('resume');
    return true;
  }

  /** Starts sessions with known outcomes, unless all bots are halted. */
  async #leaveAlone(round: number): Promise<void> {
    this.#newest = await Promise.all(
      KINDS.map(async (kind, i) => {
        const slug = `lone-${round}-${i}`;
        await this.#create(slug, kind);
        const { speed } = kind;
        const started = await this.#once('start', `/bots/${slug}/paper/start`, { speed }, 202);
        const lone = { task_id: started!['task_id'] as string, kind };
        this.#lones.push(lone);
        return lone;
      }),
    );
  }

  /** Resolves when one of them is between its first and last bars. */
  async #inMidst(round: number): Promise<void> {
    const { task_id } = this.#newest[(round - 1) % KINDS.length]!;
    const share = this.#random();
    await this.#until(async () => {
      const task = must(await this.#send('GET', `/tasks/${task_id}`), 200);
      const { done, total } = task['progress'] as Task['progress'];
      return task['ended_at'] !== null || (total !== null && done >= share * total);
    }, 'a session in its midst');
  }

  async #haltAll(): Promise<void> {
    await sleep(this.#random() * 300);
    if (!this.#isLoaded) return;
    // From here on, these sessions are disturbed.
    this.#lones = [];
    const reply = await this.#send('POST', '/bots/halt-all', { reason: 'torture' });
    if (reply === undefined) {
      this.#cutOff += 1;
      return;
    }
    this.#lones = [];
    this.#mustBeVerified(reply);
    this.#halted.push(reply.json['halt_id'] as string);
    this.#count('haltAll');
  }

  // Steps of a client.

  #count(deed: Deed): void {
    this.#acknowledged[deed] += 1;
    this.#onDeed();
  }

  async #create(slug: string, { symbol, timeframe, fast }: Kind): Promise<Reply | undefined> {
    const document = tradingDocument(slug, symbol, timeframe, fast);
    const reply = await this.#send('POST', '/bots', { document });
    if (reply === undefined) return undefined;
    must(reply, 201);
    this.#count('create');
    return reply;
  }

  /**
   * Repeats a request until it has taken effect once.
   * @returns undefined after a cut-off response; a problem if a halted bot is not started.
   */
  async #once(
    deed: Deed,
    path: string,
    body: object,
    status: number,
  ): Promise<Reply['json'] | undefined> {
    const asked: Once = { path, body, key: randomUUID() };
    const reply = await this.#sendOnce(asked);
    if (reply === undefined) {
      this.#cutOff += 1;
      this.#undone.push(asked);
      return undefined;
    }
    if (reply.status !== status && reply.json['reason'] !== 'halted') must(reply, status);
    if (reply.status === status) {
      this.#count(deed);
      this.#keep(asked, reply);
    }
    return reply.json;
  }

  #sendOnce({ path, body, key }: Once): Promise<Reply | undefined> {
    return this.#send('POST', path, body, { 'idempotency-key': key });
  }

  #keep({ path }: Once, { json }: Reply): void {
    const task_id = json['task_id'] as string | undefined;
    if (task_id === undefined) return;
    if (this.#tasks.has(task_id)) throw new Error(`${task_id} for two requests`);
    this.#tasks.add(task_id);
    const slug = path.split('/')[2]!;
    this.#started.set(slug, (this.#started.get(slug) ?? 0) + 1);
  }

  /** @returns undefined if the server was killed before it responded. */
  async #send(
    method: 'GET' | 'POST' | 'PUT',
    path: string,
    body?: object,
    headers: Readonly<Record<string, string>> = {},
  ): Promise<(Reply & { readonly tag: string }) | undefined> {
    if (this.#servers.length === 0) return undefined;
    const server = this.#anyOf(this.#servers);
    try {
      const answer = await server.pool!.request({
        method,
        path,
        headers: {
          authorization: this.#authorization,
          ...(body !== undefined && { 'content-type': 'application/json' }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
      const text = await answer.body.text();
      const json = (text === '' ? {} : JSON.parse(text)) as Reply['json'];
      return { status: answer.statusCode, text, json, tag: String(answer.headers['etag']) };
    } catch (error) {
      if (server.isKilled) return undefined;
      throw error;
    }
  }

  #anyOf<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#random() * choices.length)]!;
  }

  async #taskStatus(task_id: string): Promise<string> {
    const reply = must(await this.#send('GET', `/tasks/${task_id}`), 200);
    if (reply['status'] === 'failed') throw new Error(JSON.stringify(reply));
    return reply['status'] as string;
  }

  async #hashOf(task_id: string): Promise<string> {
    const { hashes } = must(await this.#send('GET', `/tasks/${task_id}/result`), 200);
    return (hashes as { readonly events: string }).events;
  }

  async #until(isSo: () => Promise<boolean>, what: string): Promise<void> {
    const begin = performance.now();
    for (;;) {
      const isThere = await isSo();
      const ms = performance.now() - begin;
      this.#waits[what] = Math.max(this.#waits[what] ?? 0, Math.round(ms));
      if (isThere) return;
      if (ms > PATIENCE_MS) throw new Error(`${what}: for ${PATIENCE_MS} ms\n${this.#logs()}`);
      await sleep(3 * PAUSE_MS);
    }
  }

  #logs(): string {
    return [...this.#servers, ...this.#workers].map(({ running }) => running.log()).join('\n--\n');
  }

  // Checks after the kill.

  /** Repeats requests that were cut off: they take effect now, or did before. */
  async #repeat(): Promise<void> {
    const undone = this.#undone;
    this.#undone = [];
    for (const asked of undone) {
      const reply = await this.#sendOnce(asked);
      if (reply?.status === 409 && reply.json['reason'] === 'halted') continue;
      must(reply, asked.path === '/bots' ? 201 : 202);
      this.#keep(asked, reply!);
    }
  }

  async #check(read: Db): Promise<void> {
    await this.#checkVersions(read);
    await this.#checkTasks(read);
    await this.#checkHalts(read);
    await this.#checkSnapshots();
    await this.#checkLones();
    await this.#checkEvents(read);
    const lifted = await this.#send('POST', '/bots/resume-all', { reason: 'torture' });
    if (lifted?.status !== 409) must(lifted, 200);
  }

  async #checkVersions(read: Db): Promise<void> {
    for (const { slug, versions, cutOff } of this.#shared) {
      const rows = await read
        .selectFrom('bot_versions')
        .innerJoin('bots', 'bots.bot_id', 'bot_versions.bot_id')
        .select(['version', 'hash'])
        .where('slug', '=', slug)
        .orderBy('version')
        .execute();
      const there = new Map(rows.map(({ version, hash }) => [version, hash]));
      for (const [version, hash] of versions) {
        if (there.get(version) !== hash) throw new Error(`${slug} has lost version ${version}`);
      }
      const unasked = rows.length - versions.size - cutOff;
      if (unasked > 0) throw new Error(`${slug} has ${unasked} versions that nobody asked for`);
      rows.forEach(({ version }, i) => mustEqual(`${slug}: version`, version, i + 1));
    }
  }

  async #checkTasks(read: Db): Promise<void> {
    const rows = await read
      .selectFrom('tasks')
      .innerJoin('bots', 'bots.bot_id', 'tasks.bot_id')
      .leftJoin('trading_sessions', 'trading_sessions.task_id', 'tasks.task_id')
      .select(['tasks.task_id', 'tasks.status', 'slug', 'stop_requested_at', 'ended_at'])
      .execute();
    const there = new Map(rows.map((row) => [row.task_id, row]));
    for (const task_id of this.#tasks) {
      if (!there.has(task_id)) throw new Error(`the task ${task_id} was acknowledged, and is gone`);
    }
    for (const [slug, count] of this.#started) {
      const made = rows.filter((row) => row.slug === slug).length;
      mustEqual(`tasks of ${slug}`, made, count);
    }
    for (const [task_id, status] of this.#ends) {
      const now = there.get(task_id)?.status;
      if (now !== status) throw new Error(`${task_id} had ended as ${status}, and is ${now}`);
    }
    for (const task_id of this.#stopped) {
      const { stop_requested_at, ended_at } = there.get(task_id)!;
      if ((stop_requested_at ?? ended_at) === null) throw new Error(`${task_id} was not stopped`);
    }
    await this.#until(async () => (await deadWorkers(read)).length === 0, 'tasks of the dead');
    // Ten consecutive deaths before any record would count as the fault of the task.
    await this.#until(
      async () => (await failingSessions(read)) === 0,
      'sessions that do not go on',
    );
  }

  /** Checks that halted sessions have ended, and that every acknowledged halt exists. */
  async #checkHalts(read: Db): Promise<void> {
    const known = await read.selectFrom('halts').select(['halt_id', 'lifted_at']).execute();
    const there = new Map(known.map(({ halt_id, lifted_at }) => [halt_id, lifted_at]));
    for (const halt_id of this.#halted) {
      if (!there.has(halt_id)) throw new Error(`the halt ${halt_id} was acknowledged, and is gone`);
    }
    for (const { slug, halt } of this.#traded) {
      if (typeof halt === 'string' && there.get(halt) !== null) {
        throw new Error(`${slug} was halted, and is not any more`);
      }
    }
    await this.#until(
      async () => (await tradingUnderHalt(read)).length === 0,
      'trading while halted',
    );
    const ended = await read
      .selectFrom('trading_sessions')
      .innerJoin('tasks', 'tasks.task_id', 'trading_sessions.task_id')
      .select(['tasks.task_id', 'state'])
      .where('ended_at', 'is not', null)
      .where('tasks.status', '=', 'canceled')
      .execute();
    for (const { task_id, state } of ended) {
      const { working } = JSON.parse(state) as SessionState;
      if (working.length > 0) throw new Error(`${task_id} has ended, and orders of it work`);
    }
  }

  /** Checks that the state after an event has not changed. */
  async #checkSnapshots(): Promise<void> {
    for (const { slug, seq, hash } of this.#snapshots.splice(0)) {
      const reply = await this.#send('GET', `/bots/${slug}/state/snapshot?at_seq=${seq}`);
      const { state_hash } = must(reply, 200) as { state?: BotState; state_hash?: string };
      if (state_hash !== hash) throw new Error(`event ${seq} of ${slug} came to another state`);
    }
  }

  /** Tasks that have ended by now. */
  async #checkLones(): Promise<void> {
    const open: Lone[] = [];
    for (const lone of this.#lones) {
      const { task_id, kind } = lone;
      const task = must(await this.#send('GET', `/tasks/${task_id}`), 200);
      if (task['ended_at'] === null) {
        open.push(lone);
        continue;
      }
      if (task['status'] !== 'success') throw new Error(`left alone, ${JSON.stringify(task)}`);
      const hash = await this.#hashOf(task_id);
      if (hash !== this.#hashes.get(kind)) throw new Error(`${task_id} came to other events`);
      this.#sessionsCompared += 1;
      this.#sessionsMoved += (task['attempts'] as number) - 1;
    }
    this.#lones = open;
  }

  /** Verifies the logs of all bots with events since the last check. */
  async #checkEvents(read: Db): Promise<void> {
    const bots = await read.selectFrom('bots').select(['bot_id', 'event_seq as seq']).execute();
    for (const { bot_id, seq } of bots) {
      if (this.#verified.get(bot_id) === seq) continue;
      const { fault, head } = await verifyEvents(read, bot_id);
      if (fault) throw new Error(`event ${fault.seq} of ${bot_id} is ${fault.fault}`);
      this.#verified.set(bot_id, head.seq);
    }
  }
}

async function openTasks(read: Db): Promise<number> {
  const { count } = await read
    .selectFrom('tasks')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('ended_at', 'is', null)
    .executeTakeFirstOrThrow();
  return count;
}

const MOST_FAILURES = 5;

/** Sessions that failed to progress several times in a row. */
async function failingSessions(read: Db): Promise<number> {
  const { count } = await read
    .selectFrom('trading_sessions')
    .innerJoin('tasks', 'tasks.task_id', 'trading_sessions.task_id')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('ended_at', 'is', null)
    .where('failures', '>=', MOST_FAILURES)
    .executeTakeFirstOrThrow();
  return count;
}

/** Tasks whose process no longer exists. */
async function deadWorkers(read: Db): Promise<readonly string[]> {
  const rows = await read
    .selectFrom('tasks')
    .select(['task_id', 'worker_id'])
    .where('worker_id', 'is not', null)
    .execute();
  return rows
    .filter(({ worker_id }) => !isAlive(Number(worker_id!.split('/')[1])))
    .map(({ task_id }) => task_id);
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Deployments that have not ended although their bot is halted. */
async function tradingUnderHalt(read: Db): Promise<readonly string[]> {
  const rows = await read
    .selectFrom('bot_deployments')
    .innerJoin('halts', (join) =>
      join.on((is) =>
        is.or([
          is('halts.bot_id', 'is', null),
          is('halts.bot_id', '=', is.ref('bot_deployments.bot_id')),
        ]),
      ),
    )
    .select('deployment_id')
    .where('lifted_at', 'is', null)
    .where('target', '=', 'paper')
    .where('ended_at', 'is', null)
    .execute();
  return rows.map(({ deployment_id }) => deployment_id);
}

/** Failed tasks must have lost their worker as often as is permitted. */
async function mustHaveEndedWell(read: Db): Promise<void> {
  const failed = await read
    .selectFrom('tasks')
    .select(['task_id', 'kind', 'attempts', 'error'])
    .where('status', '=', 'failed')
    .execute();
  for (const { task_id, kind, attempts, error } of failed) {
    const isBorne = kind === 'backtest' && attempts === 3 && error!.includes('worker_died');
    if (!isBorne) throw new Error(`${task_id} failed: ${error}`);
  }
}
