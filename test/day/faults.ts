/** Faults of a simulated day, drawn from its seed. */
import type { FaultAction } from '../../src/compliance/venue/faults.ts';
import type { CommitFault, SimulatedProcess } from './process.ts';
import { QUIET, type Host, type World } from './world.ts';

/** Kinds of faults. A day has about half of them, so that some days are about few. */
const KINDS = [
  'network',
  'venue',
  'streams',
  'exchange_cut',
  'server_cut',
  'pod_killed',
  'pod_dies_at_commit',
  'pod_disk_full',
  'node_lost',
  'server_killed',
  'worker_killed',
  'worker_silent',
  'thread_dies',
  'database_away',
  'commit_lost',
  'host_dies_at_commit',
  'clock_steps',
] as const;

type Kind = (typeof KINDS)[number];

/** The exchange rejects an order without a good reason. */
const REJECTED = {
  kind: 'status',
  status: 400,
  body: { code: -1013, msg: 'Filter failure: MAX_NUM_ORDERS' },
} as const;
/** The exchange accepts no request for now. */
const LIMITED = {
  kind: 'status',
  status: 429,
  body: { code: -1003, msg: 'Too many requests.' },
} as const;

/** Mean time between two faults, ms. */
const PAUSE_MS = 10_000;

export class Faults {
  readonly #world: World;
  readonly #kinds: readonly Kind[];
  #isOver = false;

  constructor(world: World) {
    const { machine } = world;
    this.#world = world;
    this.#kinds = KINDS.filter(() => machine.happens(0.5));
    world.note(`faults: ${this.#kinds.join(' ')}`);
  }

  begin(): void {
    const { machine, network } = this.#world;
    const share = (): number => machine.pick([0, 0.02, 0.1, 0.25]);
    if (this.#kinds.includes('network')) {
      Object.assign(network, {
        latencyMs: machine.pick([20, 500, 3000]),
        late: share(),
        lost: share(),
        lostAnswers: share(),
      });
      for (const link of this.#world.links()) Object.assign(link, network);
    }
    if (this.#kinds.includes('venue')) {
      this.#fail('POST /order', share(), REJECTED);
      this.#fail('requests', share(), LIMITED);
    }
    if (this.#kinds.includes('streams')) {
      this.#fail('executionReport', share(), { kind: 'drop' });
      this.#fail('executionReport', share(), { kind: 'duplicate' });
      this.#fail('executionReport', share(), { kind: 'delay', ms: machine.below(20_000) });
    }
    this.#next();
  }

  /** Ends all faults. */
  end(): void {
    this.#isOver = true;
    const { exchange, network } = this.#world;
    Object.assign(network, QUIET);
    for (const link of this.#world.links()) Object.assign(link, network, { isCut: false });
    exchange.faults.clear();
    for (const { process } of this.#world.hosts()) {
      process.nextCommit = () => undefined;
      process.isDatabaseAway = false;
      process.skewMs = 0;
    }
  }

  #fail(on: string, share: number, action: FaultAction): void {
    this.#world.exchange.faults.add({ on, share, action });
  }

  #next(): void {
    const { machine } = this.#world;
    machine.after(machine.random() * 2 * PAUSE_MS, () => {
      if (this.#isOver) return;
      const kind = this.#kinds.length === 0 ? undefined : machine.pick(this.#kinds);
      if (kind !== undefined) this.#happen(kind);
      this.#next();
    });
  }

  #happen(kind: Kind): void {
    const { machine, exchange } = this.#world;
    const pods = [...this.#world.pods.values()];
    const hosted = this.#world.hosts().filter((host) => !pods.some((pod) => pod === host));
    const pod = pods.length === 0 ? undefined : machine.pick(pods);
    const host = hosted.length === 0 ? undefined : machine.pick(hosted);
    this.#world.note(`fault ${kind}`);
    if (kind === 'streams') exchange.cut();
    else if (kind === 'database_away') this.#takeDatabaseAway(hosted, machine.random() * 12_000);
    else if (kind === 'server_killed') this.#world.server?.process.kill();
    else if (kind === 'node_lost') this.#loseNode(machine.random() * 90_000);
    else if (kind === 'clock_steps') this.#stepClock();
    else if (kind === 'thread_dies') this.#world.threads.killOne();
    else if (kind === 'worker_silent') this.#takeDatabaseAway(hosted.slice(-1), 60_000);
    else if (kind === 'worker_killed') {
      const workers = [...this.#world.workers.values()];
      if (workers.length > 0) machine.pick(workers).process.kill();
    } else if (pod !== undefined && kind === 'pod_killed') pod.process.kill();
    else if (pod !== undefined && kind === 'exchange_cut') this.#cut(pod, 'exchangeLink');
    else if (pod !== undefined && kind === 'server_cut') this.#cut(pod, 'link');
    else if (pod !== undefined && kind === 'pod_dies_at_commit') {
      this.#atCommit(pod.process, machine.pick(['die_before', 'die_after']));
    } else if (pod !== undefined && kind === 'pod_disk_full') this.#atCommit(pod.process, 'full');
    else if (host !== undefined && kind === 'commit_lost') this.#atCommit(host.process, 'lost');
    else if (host !== undefined && kind === 'host_dies_at_commit') {
      this.#atCommit(host.process, machine.pick(['die_before', 'die_after']));
    }
  }

  /** The fault happens at one of the next commits of the process. */
  #atCommit(process: SimulatedProcess, fault: CommitFault): void {
    let left = this.#world.machine.below(6);
    process.nextCommit = () => {
      left -= 1;
      if (left >= 0) return undefined;
      process.nextCommit = () => undefined;
      this.#world.note(`${process.name}: ${fault} at a commit`);
      return fault;
    };
  }

  #takeDatabaseAway(hosted: readonly Host[], ms: number): void {
    for (const { process } of hosted) process.isDatabaseAway = true;
    this.#world.machine.after(ms, () => {
      for (const { process } of hosted) process.isDatabaseAway = false;
    });
  }

  #cut(host: Host, name: 'link' | 'exchangeLink'): void {
    const { machine } = this.#world;
    const link = host[name];
    link.isCut = true;
    machine.after(machine.random() * 90_000, () => (link.isCut = false));
  }

  /** The pod continues without its volume, which another pod uses. */
  #loseNode(ms: number): void {
    const { machine, cluster } = this.#world;
    const { running } = cluster;
    if (running.length === 0) return;
    const lost = cluster.loseNode(machine.pick(running));
    if (lost === undefined) return;
    lost.process.hasLostVolume = true;
    const pod = this.#world.pods.get(lost.process)!;
    if (machine.happens(0.5)) pod.link.isCut = true;
    machine.after(ms, () => cluster.removeLost(lost));
  }

  #stepClock(): void {
    const { machine } = this.#world;
    const hosts = this.#world.hosts();
    if (hosts.length === 0) return;
    const { process } = machine.pick(hosts);
    const isPod = this.#world.pods.has(process);
    // Claims are measured by the clock of the server, with a margin of a few seconds.
    process.skewMs = Math.round((machine.random() - 0.5) * (isPod ? 240_000 : 6000));
    this.#world.note(`${process.name}: clock off by ${process.skewMs} ms`);
  }
}
