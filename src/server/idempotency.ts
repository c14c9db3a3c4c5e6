import { createHash } from 'node:crypto';
import type { Context } from 'hono';
import { REPLAYED_HEADER } from '../api/http.ts';
import { ServiceError } from '../base/errors.ts';
import type { Storage, StorageService } from '../storage/storage.ts';
import type { Db, IdempotencyKeysTable } from '../storage/tables.ts';
import { actorOf } from './authentication.ts';
import type { AppEnv } from './services.ts';

const RETENTION_MS = 24 * 3_600_000;

/**
 * Creates something for a request, or returns the stored response if a request with the same
 * `Idempotency-Key` has already succeeded. The response is stored in the transaction that creates the
 * object. Of concurrent requests, the first creates the object and the others return its response. A
 * failed request stores nothing and can be repeated.
 *
 * Not for responses with secrets, because they are stored for a day.
 *
 * @param create must make exactly one write with the service that it receives, and return its result.
 * @param answer builds the response body, a JSON object.
 * @throws ServiceError `idempotency_mismatch` if the key was used for a different request.
 */
export async function createOnce<S extends StorageService, T, A extends object>(
  c: Context<AppEnv>,
  service: S,
  create: (service: S) => Promise<T>,
  answer: (created: T) => A,
): Promise<A> {
  const key = c.req.header('idempotency-key');
  if (key === undefined) return answer(await create(service));
  const { storage, clock } = service;
  const caller = actorOf(c);
  const request_hash = hashRequest(c);
  const repeat = (kept: Kept): A => {
    if (kept.request_hash !== request_hash) throw mismatch(key);
    c.header(REPLAYED_HEADER, 'true');
    return JSON.parse(kept.body) as A;
  };
  const before = await find(storage.read, caller, key);
  if (before !== undefined) return repeat(before);

  const write: Storage['write'] = (work) =>
    storage.write(async (tx) => {
      const meanwhile = await find(tx, caller, key);
      if (meanwhile !== undefined) throw new AlreadyCreated(meanwhile);
      const created = await work(tx);
      const body = JSON.stringify(answer(created as unknown as T));
      const row = { caller, key, request_hash, body, answered_at: clock() };
      await tx.insertInto('idempotency_keys').values(row).execute();
      return created;
    });
  try {
    return answer(await create({ ...service, storage: { ...storage, write } }));
  } catch (error) {
    if (error instanceof AlreadyCreated) return repeat(error.kept);
    throw error;
  }
}

type Kept = Pick<IdempotencyKeysTable, 'request_hash' | 'body'>;

class AlreadyCreated extends Error {
  readonly kept: Kept;

  constructor(kept: Kept) {
    super('a concurrent request with the same key succeeded');
    this.kept = kept;
  }
}

/** SHA-256, in hex, of method, path and body. */
function hashRequest(c: Context<AppEnv>): string {
  return createHash('sha256')
    .update(`${c.req.method} ${c.req.path}\n`)
    .update(c.get('body'))
    .digest('hex');
}

async function find(db: Db, caller: string, key: string): Promise<Kept | undefined> {
  return db
    .selectFrom('idempotency_keys')
    .select(['request_hash', 'body'])
    .where('caller', '=', caller)
    .where('key', '=', key)
    .executeTakeFirst();
}

function mismatch(key: string): ServiceError {
  return new ServiceError(
    'idempotency_mismatch',
    `the Idempotency-Key ${key} was already used for a different request`,
    { remedy: 'Use a new key for each request; repeat a request with exactly the same bytes.' },
  );
}

export async function purgeIdempotencyKeys(tx: Db, now: number): Promise<void> {
  await tx
    .deleteFrom('idempotency_keys')
    .where('answered_at', '<=', now - RETENTION_MS)
    .execute();
}
