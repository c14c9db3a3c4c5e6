import type { Scope } from '../../src/base/scopes.ts';
import { addToken } from '../../src/identity/tokens.ts';
import type { Storage } from '../../src/storage/storage.ts';
import { allowedToTrade, documentOn } from '../fleet/tasks/market.ts';

const YEAR = 365 * 86_400;

/**
 * Adds an administrator with all scopes for bots, without a server.
 * @param now milliseconds since the Unix epoch.
 * @param more further scopes.
 * @returns the `Authorization` header of the administrator.
 */
export async function addTrader(
  storage: Storage,
  now: number,
  ...more: readonly Scope[]
): Promise<string> {
  const administrator = {
    administrator_id: 'trader',
    name: 'trader',
    password_hash: 'none',
    totp_secret: 'none',
    totp_last_step: 0,
    created_at: now,
    disabled_at: null,
  };
  const scopes: Scope[] = ['read', 'write', 'trade', 'halt', ...more];
  const { token } = await storage.write(async (tx) => {
    await tx.insertInto('administrators').values(administrator).execute();
    const terms = { label: 'test', scopes, expires_in_seconds: YEAR };
    return addToken(tx, now, 'operator', 'trader', terms);
  });
  return `Bearer ${token}`;
}

/**
 * A bot that may trade on paper; the smaller `fast` is, the more often it trades.
 * @param symbol a symbol of `fillCatalogue`.
 */
export function tradingDocument(
  slug: string,
  symbol: 'SPX' | 'LONG',
  timeframe: '1d' | '1m',
  fast: number,
): ReturnType<typeof documentOn> {
  const document = documentOn(slug, symbol, timeframe);
  const strategy = { name: 'sma_crossover', params: { fast, slow: fast + 1 } };
  return allowedToTrade({ ...document, spec: { ...(document['spec'] as object), strategy } });
}
