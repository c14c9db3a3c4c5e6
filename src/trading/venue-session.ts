import type { VenueOrder, VenueReport, VenueRules } from '../engine/venue.ts';
import { ServiceError } from '../errors.ts';
import type { SessionInput } from './session-input.ts';
import type { Progress, SessionState } from './session-state.ts';
import { Session } from './session.ts';
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

  /** @throws ServiceError `invalid_spec` for an account that is no cash account. */
  constructor({ deployment_id, rules, ...setup }: VenueSessionSetup) {
    if (setup.config.account.model !== 'cash') {
      throw new ServiceError('invalid_spec', 'at a venue a bot trades in a cash account', {
        remedy: 'Set engine.account.model to cash, or let the bot trade on the simulated venue.',
      });
    }
    super(setup, rules);
    this.#deploymentId = deployment_id;
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
      if (report.client_order_id !== clientOrderId(this.#deploymentId, report.order)) {
        throw new RangeError(`order ${report.order} is not called ${report.client_order_id}`);
      }
      this.engine.report(report);
    });
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
    for (const order of this.engine.working) {
      const sent = this.engine.sent!.get(order.id);
      if (sent === undefined) continue;
      const { id, instrument, side, quantity, limit, stop, postOnly, reduceOnly } = order;
      const known = {
        order: id,
        client_order_id: clientOrderId(this.#deploymentId, id),
        symbol: instrument.symbol,
      };
      if (sent.canceling !== undefined) requests.push({ cancel: known });
      else if (!sent.isReported && isRunning) {
        const place = {
          ...known,
          side,
          // The engine denies those of other kinds.
          type: order.type as VenueOrder['type'],
          time_in_force: order.timeInForce as VenueOrder['time_in_force'],
          quantity,
          ...(!Number.isNaN(limit) && { limit }),
          ...(!Number.isNaN(stop) && { stop }),
          ...(postOnly && { post_only: true as const }),
          ...(reduceOnly && { reduce_only: true as const }),
        };
        requests.push({ place });
      }
    }
    return requests;
  }

  override state(): SessionState {
    const state = super.state();
    const sent = this.engine.sent!;
    const working = state.working.map((order) => {
      const at = sent.get(order.order);
      if (at === undefined) return order;
      return {
        ...order,
        client_order_id: clientOrderId(this.#deploymentId, order.order),
        ...(at.canceling !== undefined && { pending_cancel: true as const }),
      };
    });
    // Fills since the newest bars count in it, too.
    return { ...state, equity: this.engine.equity, working };
  }

  protected override tell(input: Exclude<SessionInput, { readonly kind: 'data.bars' }>): void {
    if (input.kind === 'venue.report') this.report(input.report);
    else super.tell(input);
  }
}
