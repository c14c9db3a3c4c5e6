import type { VenueOrder } from '../venue.ts';
import type { Ccxt } from './ccxt-types.ts';
import type { SendFailure } from './order-state.ts';
import type { VenueClient } from './venue-client.ts';

/** Classifies the error of a request that placed an order. */
export function failureOf(client: VenueClient, error: unknown, order: VenueOrder): SendFailure {
  const { ccxt } = client;
  if (client.isRateLimit(error)) return { kind: 'limited', error };
  // A duplicate is rejected because the order exists.
  if (!(error instanceof ccxt.ExchangeError) || isDuplicate(ccxt, error)) {
    return { kind: 'in_doubt', error };
  }
  const reason = knownReason(ccxt, error, order);
  return {
    kind: 'rejected',
    reason: reason ?? 'refused_by_venue',
    isCertain: reason !== undefined,
  };
}

function isDuplicate(ccxt: Ccxt, error: Error): boolean {
  const { message } = error;
  return error instanceof ccxt.DuplicateOrderId || /duplicate/i.test(message);
}

/** Maps errors to a fixed set of reasons, whatever the text of the exchange. */
function knownReason(ccxt: Ccxt, error: Error, { post_only }: VenueOrder): string | undefined {
  const { message } = error;
  const causes = [
    [ccxt.InsufficientFunds, 'insufficient_funds'],
    [ccxt.OrderImmediatelyFillable, post_only ? 'post_only_would_cross' : 'would_trigger'],
    [ccxt.OrderNotFillable, 'not_fillable'],
    [ccxt.InvalidOrder, 'invalid_order'],
    [ccxt.MarketClosed, 'market_closed'],
    [ccxt.BadSymbol, 'unknown_symbol'],
    [ccxt.AuthenticationError, 'not_permitted'],
  ] as const;
  const known = causes.find(([cause]) => error instanceof cause)?.[1];
  // ccxt has no class for violated limits of quantity, price and value.
  return known ?? (/filter failure/i.test(message) ? 'invalid_order' : undefined);
}
