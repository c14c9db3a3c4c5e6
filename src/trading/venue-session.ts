import type { Order } from '../engine/orders.ts';
import type { SentOrder } from '../engine/venue-desk.ts';
import type { VenueOrder, VenueReport, VenueRules } from '../engine/venue.ts';
import { ServiceError } from '../base/errors.ts';
import type { SupervisionInput } from './session-supervision.ts';
import type { SessionInput } from './session-input.ts';
import type { Progress, SessionState, WorkingOrder } from '../events/session-state.ts';
import { Session, workingOrder } from './session.ts';
import type { SessionSetup } from './session.ts';
import { clientOrderId } from './venue.ts';
import type { VenueOrderId } from './venue.ts';

export interface VenueSessionSetup extends SessionSetup {
  /** The same for as long as the deployment lives: its orders are called after it. */
  readonly deployment_id: string;
  readonly rules: VenueRules;
}

/** What a venue has to be asked for. */
export type VenueRequest = { readonly place: VenueOrder } | { readonly cancel: VenueOrderId };

/**
 * A strategy whose orders are worked at a venue. Nothing is filled here: what `outbox` lists is to be
 * asked of the venue, and what the venue answers, or tells by itself, is to be recorded and then told
 * to `report`. It is what its setup and its inputs make of it, as a paper session is.
 */
export class VenueSession extends Session {
  readonly #deploymentId: string;
  #rules: VenueRules;
  /** Epochs of the server's database in client order ids, each with its first order. */
  readonly #epochs = [{ from: 1, epoch: 1 }];
  #known: readonly Current[] = [];
  #told: readonly WorkingOrder[] = [];
  /** Whether these are of now. */
  #isKnown = false;

  /** @throws ServiceError `invalid_spec` for an account that is no cash account. */
  constructor({ deployment_id, rules, ...setup }: VenueSessionSetup) {
    if (setup.config.account.model !== 'cash') {
      throw new ServiceError('invalid_spec', 'at a venue a bot trades in a cash account', {
        remedy: 'Set engine.account.model to cash, or let the bot trade on the simulated venue.',
      });
    }
    super(setup, rules);
    this.#deploymentId = deployment_id;
    this.#rules = rules;
  }

  /**
   * The session that these inputs lead to.
   *
   * @throws RangeError for inputs that no session could have been told.
   */
  static override async resume(
    setup: VenueSessionSetup,
    inputs: Iterable<SessionInput> | AsyncIterable<SessionInput>,
  ): Promise<VenueSession> {
    const session = new VenueSession(setup);
    await session.retell(inputs);
    session.#isKnown = false;
    return session;
  }

  /**
   * Takes what the venue says of an order, also after the session or the order has ended: a fill
   * counts whenever it is told. The strategy hears of it with the next bars.
   *
   * @throws RangeError for an order that is none of this session's at the venue, and for numbers that
   *   are none; the session is as before then.
   */
  report(report: VenueReport): Progress {
    return this.progress(() => {
      if (report.client_order_id !== this.#nameOf(report.order)) {
        throw new RangeError(`order ${report.order} is not called ${report.client_order_id}`);
      }
      this.engine.report(report);
    });
  }

  /** Has it go by other rules of the venue from now on, also by what its instruments are doing. */
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

  /** Those of the venue that it goes by. */
  get rules(): VenueRules {
    return this.#rules;
  }

  /** Whether an order is not to be sent at the moment, as its instrument is halted, closed or gone. */
  isShut({ order }: VenueOrderId): boolean {
    const sent = this.engine.sent!.get(order);
    return sent !== undefined && this.engine.isShut(sent.order.instrument);
  }

  /**
   * What the venue has to be asked for, given what it has reported, oldest order first: to place the
   * orders without any report, and to cancel those of which a cancel is not confirmed. An order of
   * both kinds is only to be canceled; where the venue has never seen it, report it `canceled`. Once
   * the session has ended, no order is to be placed.
   *
   * Asking twice does no harm, and after a crash there is no telling what was asked.
   */
  outbox(): readonly VenueRequest[] {
    const isRunning = this.status === 'running';
    const requests: VenueRequest[] = [];
    for (const one of this.#current()) {
      const { order, sent } = one;
      if (sent === undefined) continue;
      if (sent.canceling !== undefined) requests.push({ cancel: this.#named(order) });
      else if (!sent.isReported && isRunning) {
        requests.push((one.request ??= { place: { ...this.#named(order), ...terms(sent) } }));
      }
    }
    return requests;
  }

  override state(): SessionState {
    // Fills since the newest bars count in it, too.
    return { ...super.state(), equity: this.engine.equity };
  }

  protected override working(): readonly WorkingOrder[] {
    this.#current();
    return this.#told;
  }

  protected override progress(change: () => void): Progress {
    this.#isKnown = false;
    return super.progress(change);
  }

  /** A report changes one order, and all others are as they were. */
  #current(): readonly Current[] {
    if (this.#isKnown) return this.#known;
    const before = this.#known;
    let at = 0;
    this.#known = this.engine.working.map((order) => {
      // Both are oldest first: what is passed over has ended.
      while (at < before.length && before[at]!.order !== order) at += 1;
      const known = before[at];
      at += 1;
      if (known !== undefined && isAsTold(known)) return known;
      const sent = this.engine.sent!.get(order.id);
      const told: WorkingOrder = {
        ...workingOrder(order),
        ...(sent && { client_order_id: this.#nameOf(order.id) }),
        ...(sent?.canceling !== undefined && { pending_cancel: true as const }),
      };
      return { order, sent, told, request: undefined };
    });
    this.#told = this.#known.map(({ told }) => told);
    this.#isKnown = true;
    return this.#known;
  }

  #named({ id, instrument: { symbol } }: Readonly<Order>): VenueOrderId {
    return { order: id, client_order_id: this.#nameOf(id), symbol };
  }

  /** An order keeps its client order id when the epoch changes. */
  #nameOf(order: number): string {
    const epoch = this.#epochs.findLast(({ from }) => from <= order)?.epoch;
    return clientOrderId(this.#deploymentId, order, epoch);
  }

  protected override tell(input: Exclude<SessionInput, { readonly kind: 'data.bars' }>): void {
    if (input.kind === 'venue.report') this.report(input.report);
    else if (input.kind === 'venue.terms') this.revise(input.rules);
    else super.tell(input);
  }
}

/** An order that works: what is told and asked of it. */
interface Current {
  readonly order: Readonly<Order>;
  /** Undefined while it waits to be handed to the venue. */
  readonly sent: Readonly<SentOrder> | undefined;
  readonly told: WorkingOrder;
  request: VenueRequest | undefined;
}

/** Of an order that a venue was handed nothing else changes. */
function isAsTold({ order: { filled, triggered }, sent, told }: Current): boolean {
  return (
    sent !== undefined &&
    told.filled === filled &&
    told.triggered === triggered &&
    (told.pending_cancel === true) === (sent.canceling !== undefined)
  );
}

function terms({ order, collar }: Readonly<SentOrder>): Omit<VenueOrder, keyof VenueOrderId> {
  const { side, type, timeInForce, quantity, limit, stop, postOnly, reduceOnly } = order;
  return {
    side,
    // The engine denies those of other kinds.
    type: type as VenueOrder['type'],
    time_in_force: timeInForce as VenueOrder['time_in_force'],
    quantity,
    ...(!Number.isNaN(limit) && { limit }),
    ...(!Number.isNaN(collar) && heldBack(type, collar)),
    ...(!Number.isNaN(stop) && { stop }),
    ...(postOnly && { post_only: true as const }),
    ...(reduceOnly && { reduce_only: true as const }),
  };
}

/** What an order without a limit is to a venue that is to fill it at no worse price. */
function heldBack(type: Order['type'], limit: number): Partial<VenueOrder> {
  if (type === 'stop') return { type: 'stop_limit', limit };
  return { type: 'limit', time_in_force: 'ioc', limit };
}
