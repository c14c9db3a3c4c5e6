import { BlockList, isIP, isIPv6 } from 'node:net';
import { getConnInfo } from '@hono/node-server/conninfo';
import type { Context } from 'hono';
import type { Services } from './services.ts';

type Proxies = Pick<Services, 'isProxy'>;

/**
 * Address of the client; `null` if it is unknown, as for requests within this process.
 *
 * `X-Forwarded-For` counts only from a trusted proxy: the last address in it that does not belong to
 * a trusted proxy is the client, because a client can write any address before that one.
 */
export function addressOf(c: Context, { isProxy }: Proxies): string | null {
  const { incoming, client } = (c.env ?? {}) as {
    readonly incoming?: object;
    /** Set by `asCaller`; requests from outside have only what Node gives them. */
    readonly client?: string | null;
  };
  if (incoming === undefined) return client ?? null;
  let address = canonical(getConnInfo(c).remote.address ?? '');
  if (address === undefined) return null;
  const forwarded = c.req.header('x-forwarded-for')?.split(',') ?? [];
  while (isProxy(address)) {
    const before = canonical(withoutPort(forwarded.pop()?.trim() ?? ''));
    if (before === undefined) break;
    address = before;
  }
  return address;
}

/** Some proxies, such as Azure Application Gateway, add the port of the client. */
function withoutPort(text: string): string {
  return text.replace(/^\[(.*)\](?::\d+)?$/, '$1').replace(/^([\d.]+):\d+$/, '$1');
}

/** Network by which attempts are counted: an IPv4 address, or the /64 of an IPv6 address. */
function networkOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [first, last] = address.split('::').map((part) => (part === '' ? [] : part.split(':'))) as [
    string[],
    string[]?,
  ];
  const zeros = Array<string>(last ? 8 - first.length - last.length : 0).fill('0');
  return `${[...first, ...zeros, ...(last ?? [])].slice(0, 4).join(':')}::/64`;
}

/** Network of the client; empty if its address is unknown. */
export function clientNetwork(c: Context, services: Proxies): string {
  const address = addressOf(c, services);
  return address === null ? '' : networkOf(address);
}

/** An address in canonical form without its zone; `undefined` for anything else. */
function canonical(text: string): string | undefined {
  const address = text.replace(/%.*$/, '');
  if (isIP(address) !== 6) return isIP(address) === 4 ? address : undefined;
  const hostname = new URL(`http://[${address}]`).hostname.slice(1, -1);
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(hostname);
  if (mapped === null) return hostname;
  const [high, low] = mapped.slice(1).map((group) => Number.parseInt(group, 16)) as [
    number,
    number,
  ];
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

const LOOPBACK = ['127.0.0.0/8', '::1'];

/**
 * Returns a test for proxies, from the setting `server_trusted_proxies`. With `auto`, proxies on this
 * machine are trusted, but only if a public URL is set: without one, clients connect directly.
 */
export function proxiesOf(trusted: string, publicUrl: string): (address: string) => boolean {
  const auto = publicUrl === 'auto' ? [] : LOOPBACK;
  const list = trusted === 'auto' ? auto : trusted === 'none' ? [] : trusted.split(',');
  const known = new BlockList();
  for (const entry of list) {
    const [address = '', prefix] = entry.split('/');
    const family = isIPv6(address) ? 'ipv6' : 'ipv4';
    if (prefix === undefined) known.addAddress(address, family);
    else known.addSubnet(address, Number(prefix), family);
  }
  return (address) => known.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
}
