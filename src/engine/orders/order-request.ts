import { ORDER_TYPES, TIMES_IN_FORCE, type ExitPrice, type OrderRequest } from './order.ts';

type Optional = Omit<OrderRequest, 'instrument' | 'side' | 'quantity'>;

/** Fields of a request, except the instrument. */
export const REQUEST_FIELDS = [
  'side',
  'quantity',
  'type',
  'limit',
  'stop',
  'trail',
  'timeInForce',
  'postOnly',
  'reduceOnly',
  'takeProfit',
  'stopLoss',
  'ocoGroup',
] as const satisfies readonly (keyof OrderRequest)[];

/** An order request whose absent fields may also be undefined. */
export type RequestFields = Pick<OrderRequest, 'instrument' | 'side' | 'quantity'> & {
  readonly [K in keyof Optional]: Optional[K] | undefined;
};

/**
 * Copies a strategy's request, reading each field once, so that later changes of it change no order.
 *
 * @throws RangeError for an invalid request: no side, a negative quantity, a missing price.
 */
export function readRequest(request: OrderRequest): RequestFields {
  const { instrument, side, quantity, limit, stop } = request;
  const { type = 'market', timeInForce = 'gtc', ocoGroup = 0 } = request;
  const { postOnly = false, reduceOnly = false } = request;
  const trail = copyOfExit(request.trail);
  const takeProfit = copyOfExit(request.takeProfit);
  const stopLoss = copyOfExit(request.stopLoss);
  if (side !== 'buy' && side !== 'sell') refuse(`side must be 'buy' or 'sell', not ${text(side)}`);
  if (!isPositive(quantity)) refuse(`quantity must be above 0, not ${text(quantity)}`);
  if (!ORDER_TYPES.includes(type)) refuse(`type must be one of ${ORDER_TYPES.join(', ')}`);
  if (!TIMES_IN_FORCE.includes(timeInForce)) {
    refuse(`timeInForce must be one of ${TIMES_IN_FORCE.join(', ')}`);
  }
  checkPrice(type, 'limit', limit, type === 'limit' || type === 'stop_limit');
  checkPrice(type, 'stop', stop, type === 'stop' || type === 'stop_limit');
  for (const [name, value] of Object.entries({ postOnly, reduceOnly })) {
    if (typeof value !== 'boolean') refuse(`${name} must be true or false, not ${text(value)}`);
  }
  if (postOnly && type !== 'limit') refuse('postOnly applies only to limit orders');
  if ((type === 'trailing_stop') !== (trail !== undefined)) {
    refuse('trail is required for trailing_stop orders and allowed only for them');
  }
  for (const [name, exit] of Object.entries({ trail, takeProfit, stopLoss })) {
    const value = typeof exit === 'object' ? exit.percent : exit;
    if (exit !== undefined && !isPositive(value)) {
      refuse(`${name} must be above 0, not ${text(value)}`);
    }
  }
  if (!Number.isInteger(ocoGroup) || ocoGroup < 0)
    refuse('ocoGroup must be a whole number of at least 0; 0 means no group');
  return {
    instrument,
    side,
    quantity,
    type,
    limit,
    stop,
    trail,
    timeInForce,
    postOnly,
    reduceOnly,
    takeProfit,
    stopLoss,
    ocoGroup,
  };
}

function copyOfExit(exit: ExitPrice | undefined): ExitPrice | undefined {
  return typeof exit === 'object' && exit !== null
    ? Object.freeze({ percent: exit.percent })
    : exit;
}

function checkPrice(type: string, name: string, value: unknown, isNeeded: boolean): void {
  if (!isNeeded && value !== undefined) refuse(`a ${type} order has no ${name}; set its type`);
  if (isNeeded && !isPositive(value)) {
    refuse(`${type} needs ${name}, a price above 0, not ${text(value)}`);
  }
}

function isPositive(value: unknown): boolean {
  return typeof value === 'number' && value > 0 && value < Infinity;
}

function text(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : String(value);
}

function refuse(what: string): never {
  throw new RangeError(`order: ${what}`);
}
