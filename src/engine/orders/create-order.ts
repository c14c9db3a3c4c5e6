import type { EngineConfig } from '../config.ts';
import type { Instrument } from '../instrument.ts';
import type { ExitPrice } from './order.ts';
import type { RequestFields } from './order-request.ts';
import { trailedStop } from './trailing-stop.ts';
import type { WorkingOrder } from './working-order.ts';

/** A request of a strategy, or of the engine for a target, an exit or a liquidation. */
export interface OrderFields extends RequestFields {
  /** Id of the entry whose fill places this exit. */
  readonly parent?: number;
  /** Share of equity of a target. */
  readonly weight?: number;
  readonly isLiquidation?: boolean;
}

const NO_EXITS: readonly WorkingOrder[] = [];

/** A new order with the status `working`, which neither a limit nor a venue has seen. */
export function createOrder(
  id: number,
  units: EngineConfig['units'],
  fields: OrderFields,
): WorkingOrder {
  const { instrument, side, quantity, trail, weight = Number.NaN } = fields;
  const type = fields.type ?? 'market';
  return {
    id,
    instrument,
    side,
    type,
    timeInForce: fields.timeInForce ?? 'gtc',
    quantity: units === 'whole' ? Math.floor(quantity) : quantity,
    weight,
    limit: fields.limit ?? Number.NaN,
    stop:
      type === 'trailing_stop'
        ? trailedStop(side, trail!, instrument.close)
        : (fields.stop ?? Number.NaN),
    trail,
    postOnly: fields.postOnly ?? false,
    reduceOnly: fields.reduceOnly ?? false,
    takeProfit: fields.takeProfit,
    stopLoss: fields.stopLoss,
    ocoGroup: fields.ocoGroup ?? 0,
    parent: fields.parent ?? 0,
    status: 'working',
    reason: undefined,
    // -0 counts like 0 and is stored as a double from the start, as every quantity will be.
    filled: -0,
    triggered: false,
    session: -1,
    triedAt: -1,
    reference: Number.NaN,
    isCheckedAtFill: !Number.isNaN(weight) || Number.isNaN(instrument.close),
    exits: NO_EXITS,
    permit: undefined,
    farthest: undefined,
    isLiquidation: fields.isLiquidation ?? false,
    isSent: false,
    pendingCancel: undefined,
    view: undefined,
  };
}

/** Requests for the exits of a bracket, the stop first, after its entry was filled at `price`. */
export function requestExits(
  { id, instrument, side, stopLoss, takeProfit }: WorkingOrder,
  quantity: number,
  price: number,
  ocoGroup: number,
): OrderFields[] {
  const isLong = side === 'buy';
  const common = {
    instrument,
    side: isLong ? 'sell' : 'buy',
    quantity,
    reduceOnly: true,
    ocoGroup,
    parent: id,
  } as const;
  const exits: OrderFields[] = [];
  if (stopLoss !== undefined) {
    const stop = exitPrice(stopLoss, price, isLong ? -1 : 1);
    exits.push({ ...common, type: 'stop', stop });
  }
  if (takeProfit !== undefined) {
    const limit = exitPrice(takeProfit, price, isLong ? 1 : -1);
    exits.push({ ...common, type: 'limit', limit });
  }
  return exits;
}

/** The request that closes a position of `position` signed units at the market. */
export function requestLiquidation(instrument: Instrument, position: number): OrderFields {
  const side = position > 0 ? 'sell' : 'buy';
  return { instrument, side, quantity: Math.abs(position), reduceOnly: true, isLiquidation: true };
}

function exitPrice(exit: ExitPrice, entryPrice: number, direction: 1 | -1): number {
  return typeof exit === 'number' ? exit : entryPrice * (1 + direction * exit.percent);
}
