import { createHash } from 'node:crypto';
import type { Context } from 'hono';
import { REPLAYED_HEADER } from '../api/http.ts';
import { ServiceError } from '../base/errors.ts';
import type { Storage } from '../storage/storage.ts';
import type { Db, IdempotencyKeysTable } from '../storage/tables.ts';
import { actorOf } from './authentication.ts';
import type { AppEnv } from './services.ts';

const RETENTION_MS = 24 * 3_600_000;

/** What a service works with. */
interface Service {
  readonly storage: Storage;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
}

/**
 * Creates something for a request or, when a request with its `Idempotency-Key` has done so before,
 * gives the answer of that one. The answer is written together with what it tells of: whatever
 * breaks off, both are there or neither. Of requests at the same time the first creates, and the
 * others wait for its answer. What failed has done nothing, and is tried anew.
 *
 * Never for answers with secrets: they are kept for a day.
 *
 * @param create makes one write with the service it is given, and returns what that does.
 * @param answer the body; a JSON object.
 * @throws ServiceError `idempotency_mismatch` when the key was sent with another request.
 */
export async function createOnce<S extends Service, T, A extends object>(
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
    super('a request with the same key was answered meanwhile');
    this.kept = kept;
  }
}

/** SHA-256, in hex, of what was asked for. */
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
    `the Idempotency-Key ${key} was sent before, with another request`,
    { remedy: 'Make a new key for each request, and repeat a request with its very bytes.' },
  );
}

/** Forgets answers that are too old to be asked for again. */
export async function purgeIdempotencyKeys(tx: Db, now: number): Promise<void> {
  await tx
    .deleteFrom('idempotency_keys')
    .where('answered_at', '<=', now - RETENTION_MS)
    .execute();
}
