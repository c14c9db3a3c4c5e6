import { generateKeyPairSync } from 'node:crypto';
import {
  fingerprintOf,
  lifetime,
  publicKeyOf,
  signKeyset,
  signRoot,
  type SignedDocument,
} from '../../src/identity/root-documents.ts';
import { signerOf, type Signer } from '../../src/identity/signing-key.ts';
import { verifyTrust, type HeldTrust } from '../../src/lease/trust.ts';
import { USUAL_POLICY } from '../identity/policy.ts';

const { issuer } = USUAL_POLICY;
const DAY_SECONDS = 86_400;
/** Days after which leases of a former key have ended: 7 days and 3 of grace. */
const RETIRE_AFTER_DAYS = 12;

/** The server as seen by its operator. */
export interface OperatedServer {
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** Restarts the server with this signing key. */
  readonly startWith: (signer: Signer) => Promise<void>;
  readonly retire: (publicKeyId: string) => Promise<void>;
  /** Sends a request as the administrator. @throws Error unless it succeeds. */
  readonly ask: (method: string, path: string, body: object, stepUp?: string) => Promise<unknown>;
  /** A recovery code, which works once. */
  readonly code: string;
}

/** Day of the year, name and work of each step of the operator. */
export type Rotations = readonly {
  readonly day: number;
  readonly name: string;
  readonly run: () => Promise<void>;
}[];

export const newSigner = (): Signer => signerOf(generateKeyPairSync('ed25519').privateKey);

/**
 * A year of an issuer with a trust root: the signing key is rotated each quarter, the root once, and
 * the keyset stays expired for a month.
 */
export function yearOfRotations(server: OperatedServer, first: Signer): Rotations {
  let root = newSigner();
  const roots: SignedDocument[] = [];
  let current = first;
  let former: Signer | undefined;
  const retired: string[] = [];
  let version = 0;

  const appendRoot = (next: Signer): void => {
    const claims = {
      version: roots.length + 1,
      issuer,
      ...lifetime(server.now, 5 * 365 * DAY_SECONDS),
      threshold: 1,
      keys: [publicKeyOf(next)],
    };
    roots.push(signRoot(claims, roots.length === 0 ? [next] : [root, next]));
    root = next;
  };
  const sign = (keys: readonly Signer[], days = 400): SignedDocument => {
    version += 1;
    const claims = {
      version,
      issuer,
      ...lifetime(server.now, days * DAY_SECONDS),
      root: fingerprintOf({ roots }),
      keys: keys.map(publicKeyOf),
      retired,
    };
    return signKeyset(claims, [root]);
  };
  const publish = async (keyset: SignedDocument, stepUp?: string): Promise<void> => {
    await server.ask('PUT', '/identity/root', { roots, keyset }, stepUp);
  };
  const all = (): Signer[] => (former === undefined ? [current] : [current, former]);

  const setUp = async (): Promise<void> => {
    appendRoot(root);
    const target = `root:${fingerprintOf({ roots })}`;
    const stepUp = { action: 'identity.root.set', target, code: server.code };
    const granted = await server.ask('POST', '/identity/step-ups', stepUp);
    await publish(sign(all()), (granted as { readonly step_up_token: string }).step_up_token);
  };
  const rotateKey = async (): Promise<void> => {
    const next = newSigner();
    await publish(sign([...all(), next]));
    [former, current] = [current, next];
    await server.startWith(next);
  };
  const retire = async (): Promise<void> => {
    await server.retire(former!.publicKeyId);
    retired.push(former!.publicKeyId);
    former = undefined;
    await publish(sign(all()));
  };
  const rotateRoot = async (): Promise<void> => {
    appendRoot(newSigner());
    await publish(sign(all()));
  };

  return [
    { day: 1, name: 'first root', run: setUp },
    ...[85, 175, 265, 345].flatMap((day) => [
      { day, name: 'signing key rotated', run: rotateKey },
      { day: day + RETIRE_AFTER_DAYS, name: 'former key retired', run: retire },
    ]),
    { day: 130, name: 'root rotated', run: rotateRoot },
    {
      day: 205,
      name: 'keyset signed that expires on day 210',
      run: () => publish(sign(all(), 5)),
    },
    { day: 240, name: 'keyset signed after a month without one', run: () => publish(sign(all())) },
  ];
}

/** How the machines of a fleet judge the published keys. */
export class FleetTrust {
  /** Cached, because most machines have the same keys. */
  readonly #judged = new Map<HeldTrust | undefined, Map<string, HeldTrust | string>>();

  /**
   * Decides as a daemon does after each renewal. An expired keyset that adds keys changes nothing.
   *
   * @returns the keys of the machine from now on, or why it rejects the received lease.
   */
  judge(published: string, held: HeldTrust | undefined, now: number): HeldTrust | string {
    const known = this.#judged.get(held) ?? new Map<string, HeldTrust | string>();
    this.#judged.set(held, known);
    const day = Math.floor(now / 1000 / DAY_SECONDS);
    const key = `${day} ${published}`;
    const judgment = known.get(key) ?? this.#decide(published, held, now);
    known.set(key, judgment);
    return judgment;
  }

  #decide(published: string, held: HeldTrust | undefined, now: number): HeldTrust | string {
    const trust = verifyTrust(published, { held, now });
    if (!trust.ok) {
      return trust.reason === 'keyset_expired' && held !== undefined ? held : trust.detail;
    }
    // Without this, the cache would miss every day.
    const isSame =
      held !== undefined &&
      held.keyset?.version === trust.keyset?.version &&
      held.root?.lineage.length === trust.root?.lineage.length;
    return isSame ? held : trust;
  }
}
