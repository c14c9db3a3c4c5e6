import { z } from 'zod';
import type { INSTANCE_STATUSES, Passage, searchKnowledge } from '../../api/knowledge.ts';
import { createClient, type Client } from '../../client/client.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { FederationSettings, Instance } from './knowledge-file.ts';

/** Searches the knowledge of other servers. */
export interface Federation {
  readonly isEmpty: boolean;
  /** Asks all instances at the same time, each with the configured timeout. Never rejects. */
  readonly search: (q: string, limit: number) => Promise<readonly InstanceAnswer[]>;
}

/** Outcome of asking one instance. */
export interface InstanceAnswer {
  readonly name: string;
  readonly status: (typeof INSTANCE_STATUSES)[number];
  /** Written by this server, because an error text of an instance could repeat the token. */
  readonly reason: string | null;
  readonly took_ms: number;
  /** Best first. */
  readonly items: readonly Passage[];
}

/** Bytes; enough for 50 passages of the largest size. */
const LARGEST_ANSWER = 4 * 1024 * 1024;

const line = z.int().min(1).max(1e9);

/** Instances may run other versions, so unknown fields are ignored. */
const answerSchema = z.object({
  items: z
    .array(
      z.object({
        document_id: z.string().max(128),
        document: z.string().max(1000),
        passage_id: z.string().max(256),
        heading: z.array(z.string().max(1000)).max(100),
        lines: z.object({ from: line, to: line }),
        text: z.string().max(10_000),
        score: z.number(),
        // Only documents of the instance itself.
        instance: z.null(),
      }),
    )
    .max(1000),
});

/**
 * @param env contains the tokens of the instances.
 * @param clock monotonic, in milliseconds.
 */
export function federationOf(
  { instances, timeout_seconds }: FederationSettings,
  env: NodeJS.ProcessEnv,
  log: Log,
  clock: () => number = () => performance.now(),
): Federation {
  const asked = instances.map((instance) => ({
    instance,
    client: clientFor(instance, env[instance.token_env], timeout_seconds * 1000, log),
  }));
  for (const { instance, client } of asked) {
    if (client === undefined) log.warn(`knowledge_file: ${missingToken(instance)}`);
  }
  return {
    isEmpty: instances.length === 0,
    search: (q, limit) =>
      Promise.all(
        asked.map(async ({ instance, client }) => {
          const { name } = instance;
          const since = clock();
          const result = await ask(instance, client, q, limit);
          const answered = { name, ...result, took_ms: Math.round(clock() - since) };
          if (result.reason !== null) {
            const { took_ms, status } = answered;
            log.warn({
              msg: `knowledge search at ${name} failed: ${result.reason}`,
              status,
              took_ms,
            });
          }
          return answered;
        }),
      ),
  };
}

function clientFor(
  { name, url }: Instance,
  token: string | undefined,
  timeoutMs: number,
  log: Log,
): Client | undefined {
  if (!token) return undefined;
  return createClient({
    url,
    authorize: () => `Bearer ${token}`,
    warn: (text) => log.warn(`knowledge_file: ${name}: ${text}`),
    timeoutMs,
    largestAnswer: LARGEST_ANSWER,
  });
}

type Result = Pick<InstanceAnswer, 'status' | 'reason' | 'items'>;

async function ask(
  instance: Instance,
  client: Client | undefined,
  q: string,
  limit: number,
): Promise<Result> {
  if (client === undefined) return failed('refused', missingToken(instance));
  try {
    // Without federation, so that searches cannot loop.
    const query = { q, limit, federated: 'false' as const };
    const answer: unknown = await client.call<typeof searchKnowledge>('get', '/knowledge/search', {
      query,
    });
    const { success, data } = answerSchema.safeParse(answer);
    if (!success) return failed('invalid', 'its response is not a search result');
    const { name } = instance;
    const items = data.items.slice(0, limit).map((item) => ({ ...item, instance: name }));
    return { status: 'answered', reason: null, items };
  } catch (error) {
    if (!(error instanceof ServiceError)) return failed('invalid', 'the request could not be sent');
    return failure(error, instance);
  }
}

function failed(status: Result['status'], reason: string): Result {
  return { status, reason, items: [] };
}

function missingToken({ name, token_env }: Instance): string {
  return `there is no token for ${name}: ${token_env} is not set in the environment of this server`;
}

const TIMED_OUT = /^(TimeoutError|UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT)$/;

function failure({ code, cause }: ServiceError, { token_env }: Instance): Result {
  if (code === 'not_authenticated' || code === 'not_allowed') {
    return failed('refused', `it rejected the token in ${token_env} (${code})`);
  }
  if (code === 'rate_limited' || code === 'overloaded' || code === 'storage_unavailable') {
    return failed('refused', `it is busy (${code})`);
  }
  if (code !== 'server_unreachable') {
    return failed('invalid', `its search failed (${code})`);
  }
  // Without a cause, an HTTP response arrived but is not from service-local.
  if (cause === undefined)
    return failed('invalid', 'the URL does not belong to a service-local server');
  const [name, kind] = kindOf(cause);
  if (TIMED_OUT.test(name) || TIMED_OUT.test(kind)) {
    return failed('timed_out', 'it did not answer in time');
  }
  if (kind === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') {
    return failed('invalid', 'its response is too large');
  }
  return failed('unreachable', `cannot connect${kind === '' ? '' : ` (${kind})`}`);
}

/** Name and code of the innermost cause. */
function kindOf(error: unknown): readonly [name: string, code: string] {
  if (error instanceof AggregateError) return kindOf(error.errors[0]);
  if (!(error instanceof Error)) return ['', ''];
  if (error.cause instanceof Error) return kindOf(error.cause);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return [error.name, code];
}

/** Merges ranked lists: the first items of all lists, then the second items, up to `limit`. */
export function interleave<T>(lists: readonly (readonly T[])[], limit: number): T[] {
  const longest = Math.max(0, ...lists.map((list) => list.length));
  const turns = Array.from({ length: longest }, (_, rank) =>
    lists.flatMap((list) => list.slice(rank, rank + 1)),
  );
  return turns.flat().slice(0, limit);
}
