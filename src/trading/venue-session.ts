import type { Order } from '../engine/orders/order.ts';
import type { SentOrder } from '../engine/execution/sent-orders.ts';
import type { VenueOrder, VenueReport, VenueRules } from '../engine/execution/venue-protocol.ts';
import { ServiceError } from '../base/errors.ts';
import type { SupervisionInput } from './session-supervision.ts';
import type { SessionInput } from './session-input.ts';
import type { Progress, SessionState, WorkingOrder } from '../events/session-state.ts';
import { Session, workingOrder } from './session.ts';
import type { SessionSetup } from './session.ts';
import { clientOrderId } from './venue.ts';
import type { VenueOrderId } from './venue.ts';

export interface VenueSessionSetup extends SessionSetup {
  /** Stays the same for the whole deployment. Client order ids are derived from it. */
  readonly deployment_id: string;
  readonly rules: VenueRules;
}

/** A request to the venue. */
export type VenueRequest = { readonly place: VenueOrder } | { readonly cancel: VenueOrderId };

/**
 * Trades a strategy at a venue. The session fills nothing itself: the caller sends the requests of
 * `outbox` to the venue, records what the venue reports, and then passes it to `report`. Like a
 * paper session, it is decided by its setup and its inputs.
 */
export class VenueSession extends Session {
  readonly #deploymentId: string;
  #rules: VenueRules;
  /** Epochs of the server's database, each with its first order number. */
  readonly #epochs = [{ from: 1, epoch: 1 }];
  #known: readonly Current[] = [];
  #workingOrders: readonly WorkingOrder[] = [];
  /** Whether `#known` and `#workingOrders` are up to date. */
  #isKnown = false;

  /** @throws ServiceError `invalid_spec` unless the account model is `cash`. */
  constructor({ deployment_id, rules, ...setup }: VenueSessionSetup) {
    if (setup.config.account.model !== 'cash') {
      throw new ServiceError('invalid_spec', 'a bot at a venue needs a cash account', {
        remedy: 'Set engine.account.model to cash, or use the simulated venue.',
      });
    }
    super(setup, rules);
    this.#deploymentId = deployment_id;
    this.#rules = rules;
  }

  /**
   * Restores a session from its recorded inputs.
   *
   * @throws RangeError for inputs that no session can have.
   */
  static override async resume(
    setup: VenueSessionSetup,
    inputs: Iterable<SessionInput> | AsyncIterable<SessionInput>,
  ): Promise<VenueSession> {
    const session = new VenueSession(setup);
    await session.replay(inputs);
    session.#isKnown = false;
    return session;
  }

  /**
   * Applies a report of the venue, even after the session or the order has ended: a fill always
   * counts. The strategy is notified with the next bars.
   *
   * @throws RangeError for an order that this session did not send, or for invalid numbers; the
   *   session is then unchanged.
   */
  report(report: VenueReport): Progress {
    return this.progress(() => {
      if (report.client_order_id !== this.#clientOrderId(report.order)) {
        throw new RangeError(
          `order ${report.order} does not have the client order id ${report.client_order_id}`,
        );
      }
      this.engine.report(report);
    });
  }

  /** Applies new rules of the venue, including the market phases of its instruments. */
  revise(rules: VenueRules): Progress {
    return this.progress(() => {
      this.engine.revise(rules);
      this.#rules = rules;
    });
  }

  override supervise(input: SupervisionInput): Progress {
    if (input.kind === 'control.epoch_set') {
      this.#epochs.push({ from: this.engine.orderCount + 1, epoch: input.epoch });
    }
    return super.supervise(input);
  }

  /** The rules in use. */
  get rules(): VenueRules {
    return this.#rules;
  }

  /** Whether an order must wait because its instrument is halted, closed or delisted. */
  isShut({ order }: VenueOrderId): boolean {
    const sent = this.engine.sent!.get(order);
    return sent !== undefined && this.engine.isShut(sent.order.instrument);
  }

  /**
   * Requests to send to the venue, oldest order first. Places orders without a report and cancels
   * those whose cancel is not confirmed. An order that needs both is only canceled; if the venue
   * has never seen it, report it `canceled`. An ended session places no orders.
   *
   * Requests may be repeated safely. After a crash, it is unknown which were sent.
   */
  outbox(): readonly VenueRequest[] {
    const isRunning = this.status === 'running';
    const requests: VenueRequest[] = [];
    for (const one of this.#current()) {
      const { order, sent } = one;
      if (sent === undefined) continue;
      if (sent.canceling !== undefined) requests.push({ cancel: this.#orderId(order) });
      else if (!sent.isReported && isRunning) {
        requests.push((one.request ??= { place: { ...this.#orderId(order), ...terms(sent) } }));
      }
    }
    return requests;
  }

  override state(): SessionState {
    // Includes fills since the newest bars.
    return { ...super.state(), equity: this.engine.equity };
  }

  protected override working(): readonly WorkingOrder[] {
    this.#current();
    return this.#workingOrders;
  }

  protected override progress(change: () => void): Progress {
    this.#isKnown = false;
    return super.progress(change);
  }

  /** Reuses entries of unchanged orders, because a report changes only one. */
  #current(): readonly Current[] {
    if (this.#isKnown) return this.#known;
    const before = this.#known;
    let at = 0;
    this.#known = this.engine.working.map((order) => {
      // Both lists are oldest first, so a skipped entry has ended.
      while (at < before.length && before[at]!.order !== order) at += 1;
      const known = before[at];
      at += 1;
      if (known !== undefined && isUnchanged(known)) return known;
      const sent = this.engine.sent!.get(order.id);
      const state: WorkingOrder = {
        ...workingOrder(order),
        ...(sent && { client_order_id: this.#clientOrderId(order.id) }),
        ...(sent?.canceling !== undefined && { pending_cancel: true as const }),
      };
      return { order, sent, state, request: undefined };
    });
    this.#workingOrders = this.#known.map(({ state }) => state);
    this.#isKnown = true;
    return this.#known;
  }

  #orderId({ id, instrument: { symbol } }: Readonly<Order>): VenueOrderId {
    return { order: id, client_order_id: this.#clientOrderId(id), symbol };
  }

  /** Uses the epoch in which the order was placed. */
  #clientOrderId(order: number): string {
    const epoch = this.#epochs.findLast(({ from }) => from <= order)?.epoch;
    return clientOrderId(this.#deploymentId, order, epoch);
  }

  protected override apply(input: Exclude<SessionInput, { readonly kind: 'data.bars' }>): void {
    if (input.kind === 'venue.report') this.report(input.report);
    else if (input.kind === 'venue.terms') this.revise(input.rules);
    else super.apply(input);
  }
}

/** A working order with its state and the request for it. */
interface Current {
  readonly order: Readonly<Order>;
  /** Undefined until the order was sent to the venue. */
  readonly sent: Readonly<SentOrder> | undefined;
  readonly state: WorkingOrder;
  request: VenueRequest | undefined;
}

/** Compares only fields that can change after an order was sent. */
function isUnchanged({ order: { filled, triggered }, sent, state }: Current): boolean {
  return (
    sent !== undefined &&
    state.filled === filled &&
    state.triggered === triggered &&
    (state.pending_cancel === true) === (sent.canceling !== undefined)
  );
}

function terms({ order, collar }: Readonly<SentOrder>): Omit<VenueOrder, keyof VenueOrderId> {
  const { side, type, timeInForce, quantity, limit, stop, postOnly, reduceOnly } = order;
  return {
    side,
    // The engine denies other types.
    type: type as VenueOrder['type'],
    time_in_force: timeInForce as VenueOrder['time_in_force'],
    quantity,
    ...(!Number.isNaN(limit) && { limit }),
    ...(!Number.isNaN(collar) && collarTerms(type, collar)),
    ...(!Number.isNaN(stop) && { stop }),
    ...(postOnly && { post_only: true as const }),
    ...(reduceOnly && { reduce_only: true as const }),
  };
}

/** Turns a market or stop order into one that fills at no worse price than `limit`. */
function collarTerms(type: Order['type'], limit: number): Partial<VenueOrder> {
  if (type === 'stop') return { type: 'stop_limit', limit };
  return { type: 'limit', time_in_force: 'ioc', limit };
}
