import { isIP, isIPv6 } from 'node:net';
import { getConnInfo } from '@hono/node-server/conninfo';
import type { Context, MiddlewareHandler } from 'hono';
import { ServiceError } from '../errors.ts';
import type { AppEnv } from './services.ts';

/** How often an address may try. */
interface Pace {
  /** More than a person needs. */
  readonly atOnce: number;
  /** After that, one in so many milliseconds. */
  readonly everyMs: number;
}

/** Fewer than may wait to be checked, each of which takes a quarter of a second of a processor. */
export const PASSWORDS: Pace = { atOnce: 15, everyMs: 4000 };
/** They cost little: whoever spends the passwords of an address keeps nobody there from these. */
export const PASSKEYS: Pace = { atOnce: 30, everyMs: 250 };

/** With more addresses than that, those are forgotten that have tried nothing for a while. */
const MOST_ADDRESSES = 10_000;

/**
 * Lets one address try to log in only so often, whatever names it gives. Each server counts for
 * itself, and only since its start.
 *
 * @param clock milliseconds since the Unix epoch.
 */
export function limitAttempts(
  clock: () => number,
  { atOnce, everyMs }: Pace,
): MiddlewareHandler<AppEnv> {
  /** By address: when it will have as many attempts as at first. */
  const restedAt = new Map<string, number>();
  return async (c, next) => {
    const address = networkOf(addressOf(c));
    if (address !== undefined) {
      const now = clock();
      const rested = Math.max(restedAt.get(address) ?? 0, now) + everyMs;
      const waitMs = rested - now - atOnce * everyMs;
      if (waitMs > 0) throw tooMany(Math.ceil(waitMs / 1000));
      restedAt.set(address, rested);
      if (restedAt.size > MOST_ADDRESSES) {
        for (const [one, at] of restedAt) if (at <= now) restedAt.delete(one);
      }
    }
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
