import { randomUUID } from 'node:crypto';
import { TOTP } from 'otpauth';
import { ServiceError } from '../../src/base/errors.ts';
import type { Credentials } from '../../src/identity/login.ts';
import type { Identity } from '../../src/identity/context.ts';
import { replaceRecoveryCodes } from '../../src/identity/second-factor.ts';
import { createToken, type Caller } from '../../src/identity/tokens.ts';
import { newTotpSecret } from '../../src/identity/totp.ts';
import type { Scope } from '../../src/base/scopes.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { cheapHash } from './cheap-hash.ts';
import { USUAL_POLICY } from './policy.ts';
import { newTables, type TestDatabase } from '../storage/databases.ts';

export const START = Date.UTC(2026, 0, 5, 9, 30);
export const MINUTE = 60_000;
export const PASSWORD = 'correct horse battery';

const PASSWORD_HASH = cheapHash(PASSWORD);

/** The identity service on an empty database, with a clock that the test sets. */
export interface World {
  readonly database: TestDatabase;
  readonly identity: Identity;
  now: number;
  readonly another: () => Promise<Identity>;
  readonly newPerson: () => Promise<Person>;
  readonly close: () => Promise<void>;
}

type TokenCaller = Extract<Caller, { readonly token_id: string }>;

/** An administrator with credentials. */
export interface Person {
  readonly id: string;
  readonly name: string;
  readonly totp_secret: string;
  readonly recovery_codes: readonly string[];
  /** Advances the clock to the next time step, and returns its code. */
  readonly nextCode: () => string;
  /** Valid credentials with the next code. */
  readonly credentials: (wrong?: Partial<Credentials>) => Credentials;
  readonly caller: (...scopes: Scope[]) => TokenCaller;
  readonly admitted: (...scopes: Scope[]) => Promise<TokenCaller>;
  readonly token: (...scopes: Scope[]) => Promise<string>;
}

export async function newWorld(kind: Storage['kind']): Promise<World> {
  const database = await newTables(kind);
  const opened: Storage[] = [];
  const another = async (): Promise<Identity> => {
    const storage = await openStorage(database.location);
    opened.push(storage);
    const signer = new ServiceError('license_lease_unavailable', 'no key');
    return { storage, clock: () => world.now, policy: USUAL_POLICY, signer };
  };
  const identity = await another();
  const world: World = {
    database,
    identity,
    now: START,
    another,
    newPerson: () => newPerson(identity, (ms) => (world.now += ms)),
    async close() {
      for (const storage of opened) await storage.close();
      await database.remove();
    },
  };
  return world;
}

export function codeAt(secret: string, now: number): string {
  return new TOTP({ secret }).generate({ timestamp: now });
}

/** A code that is wrong in the current and the adjacent time steps. */
export function wrongCodeAt(secret: string, now: number): string {
  const right = new Set([-1, 0, 1].map((step) => codeAt(secret, now + step * 30_000)));
  return ['000000', '111111', '222222', '333333'].find((code) => !right.has(code))!;
}

/** @param wait advances the clock by milliseconds and returns the new time. */
export async function newPerson(identity: Identity, wait: (ms: number) => number): Promise<Person> {
  const { storage, clock } = identity;
  const id = randomUUID();
  const name = `a-${id}`;
  const { secret: totp_secret } = newTotpSecret(name);
  const recovery_codes = await storage.write(async (tx) => {
    await tx
      .insertInto('administrators')
      .values({
        administrator_id: id,
        name,
        password_hash: PASSWORD_HASH,
        totp_secret,
        totp_last_step: 0,
        created_at: clock(),
        disabled_at: null,
      })
      .execute();
    return replaceRecoveryCodes(tx, id);
  });
  const person: Person = {
    id,
    name,
    totp_secret,
    recovery_codes,
    nextCode() {
      return codeAt(totp_secret, wait(30_000));
    },
    credentials: (wrong = {}) => ({
      name,
      password: PASSWORD,
      code: wrong.code ?? person.nextCode(),
      ...wrong,
    }),
    caller: (...scopes) => ({
      administrator_id: id,
      token_id: randomUUID(),
      scopes: new Set(scopes),
    }),
    async admitted(...scopes) {
      const caller = person.caller(...scopes);
      const row = {
        token_id: caller.token_id,
        administrator_id: id,
        label: 'test',
        secret_hash: 'none',
        scopes: JSON.stringify(scopes),
        created_at: 0,
        expires_at: Number.MAX_SAFE_INTEGER,
        revoked_at: null,
      };
      await storage.write((tx) => tx.insertInto('api_tokens').values(row).execute());
      return caller;
    },
    async token(...scopes) {
      const terms = { label: 'test', scopes, expires_in_seconds: 3600 };
      return (await createToken(identity, person.credentials(), terms)).token;
    },
  };
  return person;
}
