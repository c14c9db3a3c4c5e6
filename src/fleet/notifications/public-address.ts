import { lookup } from 'node:dns';
import { BlockList, isIP, type LookupFunction } from 'node:net';
import { SendFailure } from './send-failure.ts';

/**
 * IPv4 addresses that are not reachable from the Internet, from the special-purpose registry of IANA.
 * They include the addresses of cloud metadata, 169.254.169.254 and 100.100.100.200.
 */
const RESERVED = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/3',
];
/** Global IPv6 addresses. Documentation is excluded, and Teredo and 6to4, which contain IPv4 addresses. */
const GLOBAL_6 = '2000::/3';
const RESERVED_6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];

const reserved = blockList([...RESERVED, ...RESERVED_6]);
const global6 = blockList([GLOBAL_6]);

function blockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address, prefix] = network.split('/') as [string, string];
    list.addSubnet(address, Number(prefix), address.includes(':') ? 'ipv6' : 'ipv4');
  }
  return list;
}

/** Whether an IP address can belong to a host on the Internet. */
export function isPublicAddress(address: string): boolean {
  const family = isIP(address);
  if (family === 4) return !reserved.check(address, 'ipv4');
  // A zone, as in `fe80::1%eth0`, occurs with link-local addresses only.
  if (family !== 6 || address.includes('%')) return false;
  return global6.check(address, 'ipv6') && !reserved.check(address, 'ipv6');
}

/**
 * Resolves a host name as `dns.lookup` does, and fails if any of its addresses is not public. A
 * connection that is opened with this function connects to an address that was checked, whatever the
 * name resolves to later.
 */
export const lookupPublic: LookupFunction = (hostname, options, callback) => {
  lookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error !== null) return callback(error, []);
    if (!addresses.every(({ address }) => isPublicAddress(address))) {
      return callback(privateAddress(hostname), []);
    }
    const [first] = addresses;
    if (options.all === true || first === undefined) return callback(null, addresses);
    callback(null, first.address, first.family);
  });
};

/** Returns the failure if the host is an IP address that is not public. Resolves no names. */
export function findPrivateLiteral(host: string): SendFailure | undefined {
  const address = host.replace(/^\[(.*)\]$/, '$1');
  return isIP(address) !== 0 && !isPublicAddress(address) ? privateAddress(host) : undefined;
}

/** @throws SendFailure if the host is an IP address that is not public; resolves no names. */
export function refusePrivateLiteral(host: string): void {
  const fault = findPrivateLiteral(host);
  if (fault !== undefined) throw fault;
}

/** Resolves a host to an address to connect to. @throws SendFailure unless it is public. */
export async function resolvePublic(host: string): Promise<string> {
  refusePrivateLiteral(host);
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  lookupPublic(host, { all: false }, (error, address) => {
    if (error === null) resolve(address as string);
    else reject(error);
  });
  return promise;
}

function privateAddress(host: string): SendFailure {
  return new SendFailure(
    `the address of ${host} is private; to allow it, set allow_private_address: true in the channel and restart the server`,
  );
}
