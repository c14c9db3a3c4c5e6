/** Invariants of a simulated day and of its end. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readAudit, verifyWholeAudit } from '../../src/identity/audit.ts';
import { verifyEvents } from '../../src/events/verify-events.ts';
import { openStorage } from '../../src/storage/storage.ts';
import type { SessionState } from '../../src/events/session-state.ts';
import type { Opening } from '../../src/trading/opening.ts';
import { clientOrderId, orderOfClientId, type VenueReport } from '../../src/trading/venue.ts';
import { isLive, type Order } from '../../src/compliance/venue/book-order.ts';
import { Reader } from './reader.ts';
import { ACCOUNT_CASH, BOTS, type DayBot } from './setup.ts';
import { checkPaper, openPaper } from './paper.ts';
import type { Pod, World } from './world.ts';

/** A deployment in the server's database. */
interface DeploymentRow {
  readonly deployment_id: string;
  readonly task_id: string;
  readonly slug: string;
  readonly ended_at: number | null;
  readonly opening: string | null;
  readonly state: string;
  readonly batches: number;
  readonly epoch: number | null;
}

/** A claim as the server granted or renewed it last. */
interface Grant {
  readonly pod: Pod;
  readonly at: number;
}

/** Time after a grant in which its runner may trade, and no other one may get the claim, ms. */
const CLAIM_MS = 20_000;

/** Equal to within the rounding of sums. */
const TOLERANCE = 1e-6;

export class Invariants {
  readonly #world: World;
  /** Bots with a verified halt, which was not lifted since. */
  readonly #halted = new Set<string>();
  /** Newest grants by deployment. */
  readonly #grants = new Map<string, Grant>();
  readonly #journals = new Map<string, Reader>();

  constructor(world: World) {
    this.#world = world;
    world.onPlaced = (order, by) => this.#checkPlaced(order, by);
    world.onSent = (clientId, by) => this.#checkSent(clientId, by);
    world.onReport = ({ process, deployment_id, isFenced }) => {
      if (isFenced)
        world.violate(`${process.name} of ${deployment_id} continues without its claim`);
    };
    world.onGrant = (pod) => this.#checkGrant(pod);
  }

  close(): void {
    for (const journal of this.#journals.values()) journal.close();
  }

  /** From now on, no order of the bots may work. */
  haltVerified(bots: readonly DayBot[]): void {
    for (const { slug } of bots) {
      this.#halted.add(slug);
      for (const { clientOrderId: id } of this.#world.exchange.openOrders(slug)) {
        this.#world.violate(`order ${id} of ${slug} works after a verified halt`);
      }
    }
    for (const { task_id } of openPaper(
      this.#world,
      bots.map(({ slug }) => slug),
    )) {
      this.#world.violate(`paper session ${task_id} continues after a verified halt`);
    }
  }

  haltLifted(bots: readonly DayBot[]): void {
    for (const { slug } of bots) this.#halted.delete(slug);
  }

  /** Deployments that have not ended, with why they are not at rest. */
  restless(): readonly string[] {
    return this.#deployments().flatMap(({ deployment_id, ended_at, state, epoch }) => {
      if (ended_at !== null) return [];
      if (epoch === null || epoch === 0) return [`${deployment_id} has no claim`];
      const own = this.#journalState(deployment_id);
      if (own === undefined) return [`${deployment_id} has no log`];
      const { deployment_id: _id, steps: _steps, ...known } = own;
      return JSON.stringify(known) === state ? [] : [`${deployment_id} is not recorded`];
    });
  }

  /** Deployments that have not ended, and pods that still run. */
  unended(): readonly string[] {
    const open = this.#deployments().filter(({ ended_at }) => ended_at === null);
    const pods = [...this.#world.pods.values()];
    return [...open, ...pods].map(({ deployment_id }) => deployment_id);
  }

  /** Once all deployments have ended. */
  async checkEnd(): Promise<void> {
    const { exchange } = this.#world;
    for (const order of exchange.orders.filter(isLive)) {
      const owner = exchange.ownerOf(order);
      this.#world.violate(`order ${order.clientOrderId} of ${owner} works although all is halted`);
    }
    for (const bot of BOTS) this.#checkHoldings(bot);
    for (const deployment of this.#deployments()) {
      this.#checkJournal(deployment.deployment_id);
      this.#checkRecorded(deployment);
    }
    checkPaper(this.#world);
    await this.#checkChains();
  }

  /** No runner gets the claim while another one may trade by it. */
  #checkGrant(pod: Pod): void {
    const { deployment_id } = pod;
    const before = this.#grants.get(deployment_id);
    const at = this.#world.machine.now;
    this.#grants.set(deployment_id, { pod, at });
    if (before === undefined || before.pod === pod || before.pod.isEnding) return;
    if (at - before.at >= CLAIM_MS) return;
    this.#world.violate(`the claim on ${deployment_id} is granted while another runner has it`);
  }

  /** An order must be on disk before its process sends it, by a claim that has not expired. */
  #checkSent(clientId: string, pod: Pod): void {
    const { deployment_id } = pod;
    const grant = this.#grants.get(deployment_id);
    const age = this.#world.machine.now - (grant?.at ?? -Infinity);
    if (grant?.pod !== pod || age > CLAIM_MS) {
      this.#world.violate(`order ${clientId} is sent without the claim`);
    }
    const order = orderOfClientId(deployment_id, clientId);
    if (order === undefined || !this.#submitted(deployment_id).includes(order)) {
      this.#world.violate(`order ${clientId} is sent before it is in the log`);
    }
  }

  #checkPlaced(order: Order, by: Pod | undefined): void {
    const { exchange } = this.#world;
    const { clientOrderId: id } = order;
    const owner = exchange.ownerOf(order);
    const violate = (what: string): void => this.#world.violate(`order ${id} of ${owner} ${what}`);
    if (exchange.orders.filter((one) => one.clientOrderId === id).length > 1) {
      violate('was placed twice');
    }
    if (by === undefined) return violate('comes from no pod');
    if (this.#grants.get(by.deployment_id)?.pod !== by) {
      violate('was placed by a process without the claim');
    }
    if (this.#halted.has(owner)) violate('was placed after a verified halt');
  }

  /** All processes that ran for a deployment. */
  #podsOf(deployment_id: string): readonly Pod[] {
    const pods = [...this.#world.everyPod.values()];
    return pods.filter((pod) => pod.deployment_id === deployment_id);
  }

  #journal(deployment_id: string): Reader | undefined {
    const known = this.#journals.get(deployment_id);
    if (known !== undefined) return known;
    const file = join(this.#world.volumeOf(deployment_id), 'runner', 'runner.sqlite');
    if (!existsSync(file)) return undefined;
    const journal = new Reader(file);
    this.#journals.set(deployment_id, journal);
    return journal;
  }

  #payloads(deployment_id: string, kind: string): readonly unknown[] {
    const journal = this.#journal(deployment_id);
    return journal === undefined ? [] : payloadsIn(journal, kind).map((one) => JSON.parse(one));
  }

  /** Numbers of the orders in the log. */
  #submitted(deployment_id: string): readonly number[] {
    const orders = this.#payloads(deployment_id, 'order.submitted') as { order: number }[];
    return orders.map(({ order }) => order);
  }

  /** The server has recorded the log of the runner, or the beginning of it. */
  #checkRecorded({ deployment_id, task_id }: DeploymentRow): void {
    const journal = this.#journal(deployment_id);
    if (journal === undefined) return;
    for (const kind of ['order.submitted', 'venue.report']) {
      const recorded = payloadsIn(this.#world.records, kind, task_id);
      const logged = payloadsIn(journal, kind).slice(0, recorded.length);
      if (recorded.join() === logged.join()) continue;
      this.#world.violate(`the server's record of ${deployment_id} is not its log`);
    }
  }

  #journalState(deployment_id: string) {
    type Logged = SessionState & { readonly deployment_id: string; readonly steps: number };
    return this.#payloads(deployment_id, 'session.state').at(-1) as Logged | undefined;
  }

  #deployments(): readonly DeploymentRow[] {
    return this.#world.records.all(
      `select d.deployment_id, d.task_id, bots.slug, d.ended_at, p.opening, s.state, s.batches,
         r.epoch
       from bot_deployments d
       join bots on bots.bot_id = d.bot_id
       join production_deployments p on p.deployment_id = d.deployment_id
       join trading_sessions s on s.task_id = d.task_id
       left join runners r on r.deployment_id = d.deployment_id
       order by d.deployment_id`,
    ) as readonly DeploymentRow[];
  }

  /** The account at the exchange must have changed by the same amounts as the sessions of the bot. */
  #checkHoldings({ slug, symbols }: DayBot): void {
    const { exchange } = this.#world;
    const expected = new Map<string, number>([['USDT', ACCOUNT_CASH]]);
    const add = (currency: string, amount: number): void =>
      void expected.set(currency, (expected.get(currency) ?? 0) + amount);
    for (const one of this.#deployments()) {
      // The recorded account is the opening until the runner has reported.
      if (one.slug !== slug || !one.epoch || one.batches === 0) continue;
      const { cash, positions } = JSON.parse(one.state) as SessionState;
      const opening = one.opening === null ? undefined : (JSON.parse(one.opening) as Opening);
      add('USDT', cash - (opening?.cash ?? 10_000));
      for (const symbol of symbols) {
        const before = opening?.positions[symbol]?.quantity ?? 0;
        add(symbol.split('/')[0]!, (positions[symbol] ?? 0) - before);
      }
    }
    for (const [currency, amount] of expected) {
      const held = exchange.balances(slug).get(currency) ?? 0;
      if (Math.abs(held - amount) > TOLERANCE) {
        this.#world.violate(`${slug} has ${held} ${currency} at the exchange, not ${amount}`);
      }
    }
  }

  #checkJournal(deployment_id: string): void {
    const { exchange } = this.#world;
    const numbers = this.#submitted(deployment_id);
    if (new Set(numbers).size < numbers.length) {
      this.#world.violate(`${deployment_id} has submitted an order twice`);
    }
    this.#checkReports(deployment_id);
    const orphans = this.#payloads(deployment_id, 'venue.orphan');
    if (orphans.length > 0) {
      this.#world.violate(`${deployment_id} met orders that it does not know`);
    }
    const known = new Set(numbers.map((order) => clientOrderId(deployment_id, order)));
    for (const { clientOrderId: id } of exchange.orders) {
      if (orderOfClientId(deployment_id, id) !== undefined && !known.has(id)) {
        this.#world.violate(`order ${id} is not in the log`);
      }
    }
  }

  /** A process takes a report of an open order once until another one follows. */
  #checkReports(deployment_id: string): void {
    const last = new Map<number, string>();
    let repeated = 0;
    for (const report of this.#payloads(deployment_id, 'venue.report') as VenueReport[]) {
      const text = JSON.stringify({ ...report, time: 0 });
      if (report.status === 'open' && last.get(report.order) === text) repeated += 1;
      last.set(report.order, text);
    }
    const restarts = this.#podsOf(deployment_id).length - 1;
    if (repeated > restarts * last.size) {
      this.#world.violate(`${deployment_id} has taken a report twice`);
    }
  }

  async #checkChains(): Promise<void> {
    const storage = await openStorage({ file: this.#world.databaseFile });
    const bots = await storage.read.selectFrom('bots').select(['bot_id', 'slug']).execute();
    for (const { bot_id, slug } of bots) {
      const { fault } = await verifyEvents(storage.read, bot_id);
      if (fault !== undefined) {
        this.#world.violate(`event ${fault.seq} of ${slug} is ${fault.fault}`);
      }
    }
    const audit = await verifyWholeAudit((after) => readAudit(storage.read, after, 1000));
    if (audit.fault !== undefined) this.#world.violate(`the audit log has a fault`);
    await storage.close();
  }
}

/** Payloads of events, as JSON. @param run_id of all runs by default. */
function payloadsIn(reader: Reader, kind: string, run_id?: string): readonly string[] {
  const rows = reader.all(
    'select run_id, payload from bot_events where kind = ? order by seq',
    kind,
  ) as readonly { readonly run_id: string; readonly payload: string }[];
  return rows
    .filter((row) => run_id === undefined || row.run_id === run_id)
    .map(({ payload }) => payload);
}
