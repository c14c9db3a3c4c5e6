import { isIP, isIPv6 } from 'node:net';
import { getConnInfo } from '@hono/node-server/conninfo';
import type { Context, MiddlewareHandler } from 'hono';
import { ServiceError } from '../errors.ts';
import { countPace, type Pace } from '../pace.ts';
import type { AppEnv } from './services.ts';

/** Fewer than may wait to be checked, each of which takes a quarter of a second of a processor. */
export const PASSWORDS: Pace = { atOnce: 15, everyMs: 4000 };
/** They cost little: whoever spends the passwords of an address keeps nobody there from these. */
export const PASSKEYS: Pace = { atOnce: 30, everyMs: 250 };

/**
 * Lets one address try to log in only so often, whatever names it gives. Each server counts for
 * itself, and only since its start.
 *
 * @param clock milliseconds since the Unix epoch.
 */
export function limitAttempts(clock: () => number, pace: Pace): MiddlewareHandler<AppEnv> {
  const waitMsOf = countPace(clock, pace);
  return async (c, next) => {
    const address = networkOf(addressOf(c));
    const waitMs = address === undefined ? 0 : waitMsOf(address);
    if (waitMs > 0) throw tooMany(Math.ceil(waitMs / 1000));
    await next();
  };
}

function tooMany(retryAfterSeconds: number): ServiceError {
  return new ServiceError('rate_limited', 'too many attempts came from this address', {
    reason: 'address',
    remedy: `Try again in ${retryAfterSeconds} s.`,
    retryAfterSeconds,
  });
}

const LOOPBACK = /^(127\.|::1$)/;

/**
 * From where a request came. A proxy on this very machine is believed what it says of it; others are
 * taken for the client. `null` where it is not known, as in this process itself.
 */
export function addressOf(c: Context<AppEnv>): string | null {
  const { incoming } = (c.env ?? {}) as { readonly incoming?: object };
  if (incoming === undefined) return null;
  const peer = getConnInfo(c).remote.address?.replace(/^::ffff:/, '');
  if (peer === undefined) return null;
  const forwarded = c.req.header('x-forwarded-for')?.split(',').at(-1)?.trim();
  const isAddress = forwarded !== undefined && isIP(forwarded) > 0;
  return LOOPBACK.test(peer) && isAddress ? forwarded : peer;
}

/** Whoever has an address of IPv6 has a network of them: its first four groups. */
function networkOf(address: string | null): string | undefined {
  if (address === null || !isIPv6(address)) return address ?? undefined;
  // What is on the same link comes with the name of the interface.
  const { hostname } = new URL(`http://[${address.replace(/%.*$/, '')}]`);
  const [first, last] = hostname
    .slice(1, -1)
    .split('::')
    .map((part) => (part === '' ? [] : part.split(':'))) as [string[], string[]?];
  const zeros = Array<string>(last ? 8 - first.length - last.length : 0).fill('0');
  return [...first, ...zeros, ...(last ?? [])].slice(0, 4).join(':');
}
