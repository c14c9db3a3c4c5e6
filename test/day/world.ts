/** The processes of a simulated day, and the connections between them. */
import { constants, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { RunnerAnswer } from '../../src/api/runners.ts';
import { readAnswer, type Exchanged } from '../../src/client/answer.ts';
import type { RunnerClient } from '../../src/client/runner.ts';
import { ServiceError } from '../../src/base/errors.ts';
import { createLog, type Log } from '../../src/base/log.ts';
import type { LiveMarkets } from '../../src/trading/live-markets.ts';
import { openStorage } from '../../src/storage/storage.ts';
import { addToken } from '../../src/identity/tokens.ts';
import type { App } from '../../src/server/services.ts';
import { SCRATCH } from '../scratch.ts';
import { clusterUnavailable, SimulatedCluster, type PodStart, type RunningPod } from './cluster.ts';
import type { Order } from '../../src/compliance/venue/book-order.ts';
import type { Connection } from '../../src/compliance/venue/in-process.ts';
import type { ExchangeLine } from '../../src/compliance/venue/exchange-line.ts';
import type { CcxtExchange } from '../../src/trading/venues/ccxt-types.ts';
import { DayExchange } from './exchange.ts';
import type { Link, Machine } from './machine.ts';
import { paperMarkets } from './paper-markets.ts';
import { runPod } from './pod.ts';
import { SimulatedProcess } from './process.ts';
import { BOTS } from './setup.ts';
import { Reader } from './reader.ts';
import { startServer, startWorker } from './server.ts';
import { SimulatedThreads } from './threads.ts';

/** A network without faults. */
export const QUIET = { latencyMs: 20, late: 0, lost: 0, lostAnswers: 0 };

const ORIGIN = 'https://service-local.example';

/** A process of the fleet, and its connections. */
export interface Host {
  readonly process: SimulatedProcess;
  /** To the server for a pod, to the cluster for a worker. */
  readonly link: Link;
  /** To the exchange. */
  readonly exchangeLink: Link;
}

export interface Pod extends Host {
  readonly deployment_id: string;
  /** Connections of its clients to the exchange. */
  readonly connections: Connection[];
  /** Whether the server has answered that another runner keeps the claim. */
  isFenced: boolean;
  /** Whether it has reported its end, or the server has ordered it. */
  isEnding: boolean;
}

export interface Violation {
  readonly time: number;
  readonly what: string;
}

export class World {
  readonly machine: Machine;
  readonly directory: string;
  readonly exchange: DayExchange;
  readonly cluster: SimulatedCluster;
  readonly pods = new Map<SimulatedProcess, Pod>();
  /** Including those that have ended. */
  readonly everyPod = new Map<SimulatedProcess, Pod>();
  readonly workers = new Map<string, Host>();
  readonly violations: Violation[] = [];
  readonly operatorLink: Link;
  /** Called for each order that the exchange takes. */
  onPlaced: (order: Order, by: Pod | undefined) => void = () => {};
  /** Called when a runner sends a report. */
  onReport: (by: Pod) => void = () => {};
  /** Called when the server grants or renews a claim. */
  onGrant: (to: Pod) => void = () => {};
  /** Called for each order that a process sends. */
  onSent: (clientId: string, by: Pod) => void = () => {};
  /** Latency and loss of new connections. */
  readonly network: Omit<Link, 'isCut' | 'timeoutMs' | 'failure'> = { ...QUIET };
  server: { readonly process: SimulatedProcess; readonly app: Promise<App> } | undefined;
  /** Given to new processes. */
  onStart: (process: SimulatedProcess) => void = () => {};
  /** Longest time until a process of the hosted side is started again, ms. */
  restartWithinMs = 5000;
  readonly lines: string[] = [];
  readonly threads: SimulatedThreads;
  /** The server's database. */
  readonly records: Reader;
  readonly #paperMarkets: LiveMarkets;
  readonly #trace = createHash('sha256');
  /** Sender of the request that the exchange processes. */
  #sender: Pod | undefined;
  /** Database with all tables and no rows. */
  readonly #template: string;
  #authorization = '';
  #isOver = false;

  constructor(machine: Machine, template: string) {
    this.machine = machine;
    this.#template = template;
    this.directory = mkdtempSync(join(SCRATCH, 'service-local-day-'));
    copyFileSync(template, this.databaseFile);
    this.records = new Reader(this.databaseFile);
    for (const { slug } of BOTS) {
      mkdirSync(join(this.directory, slug));
      for (const name of ['apiKey', 'secret'])
        writeFileSync(join(this.directory, slug, name), slug);
    }
    this.exchange = new DayExchange(machine);
    this.exchange.listen((line) => this.#noteExchange(line));
    this.threads = new SimulatedThreads(machine);
    this.#paperMarkets = paperMarkets(machine);
    this.cluster = new SimulatedCluster(machine, (start) => this.#startPod(start));
    this.operatorLink = this.newLink(40_000, unreachable);
  }

  get databaseFile(): string {
    return join(this.directory, 'server.sqlite');
  }

  volumeOf(deployment_id: string): string {
    return join(this.directory, deployment_id);
  }

  /** Starts the hosted side with an administrator and the bots. */
  async begin(): Promise<void> {
    const storage = await openStorage({ file: this.databaseFile });
    const { token } = await storage.write(async (tx) => {
      const administrator = {
        administrator_id: 'operator',
        name: 'operator',
        password_hash: 'none',
        totp_secret: 'none',
        totp_last_step: 0,
        created_at: this.machine.now,
        disabled_at: null,
      };
      await tx.insertInto('administrators').values(administrator).execute();
      const scopes = ['read', 'write', 'trade', 'halt', 'admin'] as const;
      const terms = { label: 'day', scopes, expires_in_seconds: 365 * 86_400 };
      return addToken(tx, this.machine.now, 'operator', 'operator', terms);
    });
    await storage.close();
    this.#authorization = `Bearer ${token}`;
    this.startServer();
    this.startWorker('worker-1');
    if (this.machine.happens(0.5)) this.startWorker('worker-2');
    this.exchange.open();
  }

  /** Removes everything. */
  end(): void {
    this.#isOver = true;
    for (const { process } of [...this.pods.values(), ...this.workers.values()]) process.kill();
    this.server?.process.kill();
    this.records.close();
    rmSync(this.directory, { recursive: true, force: true });
  }

  /** All processes that run. */
  hosts(): readonly Host[] {
    const { server } = this;
    const link = this.operatorLink;
    const first =
      server === undefined ? [] : [{ process: server.process, link, exchangeLink: link }];
    return [...first, ...this.workers.values(), ...this.pods.values()];
  }

  links(): readonly Link[] {
    const all = this.hosts().flatMap(({ link, exchangeLink }) => [link, exchangeLink]);
    return [...new Set([this.operatorLink, ...all])];
  }

  /** Adds a line to the trace, whose hash identifies the day. */
  note(text: string): void {
    const line = `${this.machine.now} ${text.replaceAll(this.directory, '')}`;
    this.#trace.update(`${line}\n`);
    this.lines.push(line);
  }

  get traceHash(): string {
    return this.#trace.copy().digest('hex');
  }

  violate(what: string): void {
    this.note(`VIOLATION ${what}`);
    this.violations.push({ time: this.machine.now, what });
  }

  newLink(timeoutMs: number, failure: () => Error): Link {
    return { ...this.network, isCut: false, timeoutMs, failure };
  }

  startServer(): void {
    const process = this.#newProcess('server', () => {
      this.server = undefined;
      this.#restart(() => this.startServer());
    });
    const link = this.newLink(10_000, clusterUnavailable);
    const host = this.#hostOptions(process, link);
    this.server = { process, app: this.machine.time.live(process, () => startServer(host)) };
    this.server.app.catch((error: unknown) => this.#crash(process, error));
  }

  startWorker(name: string): void {
    const process = this.#newProcess(name, () => {
      this.workers.delete(name);
      this.#restart(() => this.startWorker(name));
    });
    const link = this.newLink(10_000, clusterUnavailable);
    this.workers.set(name, { process, link, exchangeLink: link });
    const host = this.#hostOptions(process, link);
    this.machine.time
      .live(process, () => startWorker(host))
      .catch((error: unknown) => this.#crash(process, error));
  }

  /** Sends a request of an operator. @returns undefined without an answer */
  async ask(
    method: string,
    path: string,
    body?: object,
    headers: Readonly<Record<string, string>> = {},
    onAnswer?: (answer: Exchanged) => void,
  ): Promise<Exchanged | undefined> {
    const all = { authorization: this.#authorization, ...headers };
    try {
      return await this.#request(this.operatorLink, method, path, body, all, onAnswer);
    } catch (error) {
      if (error instanceof ServiceError) return undefined;
      throw error;
    }
  }

  /** Restarts a process, like the service manager of a machine. */
  #restart(start: () => void): void {
    this.machine.after(1000 + this.machine.random() * this.restartWithinMs, () => {
      if (!this.#isOver) start();
    });
  }

  #hostOptions(process: SimulatedProcess, link: Link) {
    const log = this.#logOf(process);
    const cluster = this.cluster.connect(link);
    return { file: this.databaseFile, cluster, live: this.#paperMarkets, log };
  }

  #newProcess(name: string, onKill: () => void): SimulatedProcess {
    this.note(`${name} starts`);
    const process = new SimulatedProcess(name, () => {
      this.note(`${name} ends`);
      onKill();
    });
    this.onStart(process);
    return process;
  }

  /** Ends a process that cannot start; its service manager restarts it. */
  #crash(process: SimulatedProcess, error: unknown): void {
    this.note(`${process.name} crashed: ${String(error)}`);
    process.kill();
  }

  #logOf(process: SimulatedProcess): Log {
    return createLog((line) => {
      if (!process.isOver) this.note(`${process.name}: ${line}`);
    }, true);
  }

  #startPod({ deployment_id, name, files, token, onKill }: PodStart): RunningPod {
    const slug = (JSON.parse(files['bot.json']) as { metadata: { slug: string } }).metadata.slug;
    const process = this.#newProcess(name, () => {
      this.pods.delete(process);
      for (const connection of pod.connections) connection.kill();
      onKill();
    });
    const pod: Pod = {
      process,
      link: this.newLink(10_000, unreachable),
      // Clients of the exchange time out by themselves.
      exchangeLink: this.newLink(Infinity, unreachable),
      deployment_id,
      connections: [],
      isFenced: false,
      isEnding: false,
    };
    this.pods.set(process, pod);
    this.everyPod.set(process, pod);
    const stop = new AbortController();
    const volume = this.volumeOf(deployment_id);
    this.#provision(volume);
    const exited = this.machine.time.live(process, () =>
      runPod({
        files,
        volume,
        credentials: join(this.directory, slug),
        client: this.#connectRunner(pod, token),
        definition: this.exchange.definition,
        connectToExchange: (client) => this.#connectToExchange(pod, client),
        log: this.#logOf(process),
        stop: stop.signal,
      }),
    );
    return {
      process,
      terminate: () => this.machine.time.live(process, () => stop.abort()),
      exited: exited.then(
        (outcome) => {
          this.note(`${name} exits: ${outcome}`);
          return outcome;
        },
        (error: unknown) => {
          this.note(`${name} fails: ${String(error)}`);
          return 'crashed';
        },
      ),
    };
  }

  #connectToExchange(pod: Pod, client: CcxtExchange): void {
    const connection = this.exchange.connect(client, pod.exchangeLink, (clientOrderId, moment) => {
      if (moment === 'arrived') this.#sender = pod;
      else this.machine.outside(() => this.onSent(clientOrderId, pod));
    });
    pod.connections.push(connection);
  }

  /** Notes the reports of orders. */
  #noteExchange({ kind, account = '', message }: ExchangeLine): void {
    if (kind !== 'pushed') return;
    const report = message as Readonly<Record<'c' | 'C' | 'X' | 'x' | 'l' | 'L' | 'n', string>>;
    const { x, X, l, L, n } = report;
    const id = report.C || report.c;
    this.note(`order ${id} of ${account}: ${x} ${X} ${l} at ${L}, fee ${n}`);
    if (x === 'NEW') this.onPlaced(this.exchange.order(account, id)!, this.#sender);
  }

  /** Creating the tables would take most of the time of a day. */
  #provision(volume: string): void {
    const runner = join(volume, 'runner');
    mkdirSync(runner, { recursive: true, mode: 0o700 });
    const file = join(runner, 'runner.sqlite');
    try {
      copyFileSync(this.#template, file, constants.COPYFILE_EXCL);
    } catch {
      // The volume has the log of an earlier process.
    }
  }

  #connectRunner(pod: Pod, token: () => string): RunnerClient {
    let mayWait = true;
    return {
      report: async (deployment_id, report) => {
        const path = `/deployments/${deployment_id}/runner`;
        const headers = { authorization: `Bearer ${token()}` };
        this.onReport(pod);
        pod.isEnding ||= report.ended !== null;
        const answer = await this.#request(pod.link, 'POST', path, report, headers, (given) => {
          if (given.status !== 200) return;
          pod.isEnding ||= (JSON.parse(given.text) as RunnerAnswer).command !== 'trade';
          this.onGrant(pod);
        });
        const isFence = answer.text.includes('"fenced"');
        pod.isFenced ||= isFence && !mayWait;
        // Only the first answer may be about a predecessor that was killed.
        mayWait &&= answer.status !== 200 && !isFence;
        return readAnswer(answer, ORIGIN) as RunnerAnswer;
      },
    };
  }

  /**
   * @param onAnswer called when the server answers, whether or not that answer arrives.
   * @throws ServiceError `server_unreachable`
   */
  #request(
    link: Link,
    method: string,
    path: string,
    body: object | undefined,
    headers: Readonly<Record<string, string>>,
    onAnswer: (answer: Exchanged) => void = () => {},
  ): Promise<Exchanged> {
    return this.machine.send(link, async () => {
      const { server } = this;
      if (server === undefined) throw unreachable();
      const init = {
        method,
        headers: { ...headers, 'content-type': 'application/json' },
        ...(body && { body: JSON.stringify(body) }),
      };
      const answer = await this.machine.time.live(server.process, async () => {
        const response = await (await server.app).request(`${ORIGIN}${path}`, init);
        const { status } = response;
        const text = await response.text();
        return { status, headers: Object.fromEntries(response.headers), text };
      });
      onAnswer(answer);
      return answer;
    });
  }
}

function unreachable(): ServiceError {
  return new ServiceError('server_unreachable', 'no answer in time');
}
