import { z } from 'zod';
import type { INSTANCE_STATUSES, Passage, searchKnowledge } from '../../api/knowledge.ts';
import { createClient, type Client } from '../../client/client.ts';
import { ServiceError } from '../../base/errors.ts';
import type { Log } from '../../base/log.ts';
import type { FederationSettings, Instance } from './knowledge-file.ts';

/** Asks other servers for what they know. */
export interface Federation {
  readonly isEmpty: boolean;
  /** Asks all of them at the same time, and waits for none longer than its time. */
  readonly search: (q: string, limit: number) => Promise<readonly Answered[]>;
}

/** What came of asking one. */
export interface Answered {
  readonly name: string;
  readonly status: (typeof INSTANCE_STATUSES)[number];
  /** In words of this server: what others say could hold what they were sent. */
  readonly reason: string | null;
  readonly took_ms: number;
  /** The best first. */
  readonly items: readonly Passage[];
}

/** Of 50 passages with whatever is in them. */
const LARGEST_ANSWER = 4 * 1024 * 1024;

const line = z.int().min(1).max(1e9);

/** Of other versions, too: what they tell beyond this is of no use here. */
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
        // None of what they have from elsewhere.
        instance: z.null(),
      }),
    )
    .max(1000),
});

/**
 * @param env where the tokens are.
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
            log.warn({ msg: `the knowledge of ${name}: ${result.reason}`, status, took_ms });
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

type Result = Pick<Answered, 'status' | 'reason' | 'items'>;

async function ask(
  instance: Instance,
  client: Client | undefined,
  q: string,
  limit: number,
): Promise<Result> {
  if (client === undefined) return without('refused', missingToken(instance));
  try {
    // They ask nobody: no search goes round in circles.
    const query = { q, limit, federated: 'false' as const };
    const answer: unknown = await client.call<typeof searchKnowledge>('get', '/knowledge/search', {
      query,
    });
    const { success, data } = answerSchema.safeParse(answer);
    if (!success) return without('invalid', 'what it answers is no answer to a search');
    const { name } = instance;
    const items = data.items.slice(0, limit).map((item) => ({ ...item, instance: name }));
    return { status: 'answered', reason: null, items };
  } catch (error) {
    if (!(error instanceof ServiceError)) return without('invalid', 'it could not be asked');
    return failure(error, instance);
  }
}

function without(status: Result['status'], reason: string): Result {
  return { status, reason, items: [] };
}

function missingToken({ name, token_env }: Instance): string {
  return `there is no token for ${name}: ${token_env} is not set in the environment of this server`;
}

const TIMED_OUT = /^(TimeoutError|UND_ERR_(CONNECT|HEADERS|BODY)_TIMEOUT)$/;

function failure({ code, cause }: ServiceError, { token_env }: Instance): Result {
  if (code === 'not_authenticated' || code === 'not_allowed') {
    return without('refused', `it does not take the token in ${token_env} (${code})`);
  }
  if (code === 'rate_limited' || code === 'overloaded' || code === 'storage_unavailable') {
    return without('refused', `it asks to be asked later (${code})`);
  }
  if (code !== 'server_unreachable') {
    return without('invalid', `it cannot search its knowledge (${code})`);
  }
  // Something answered, and is no such server.
  if (cause === undefined) return without('invalid', 'what answers is no service-local server');
  const [name, kind] = kindOf(cause);
  if (TIMED_OUT.test(name) || TIMED_OUT.test(kind)) {
    return without('timed_out', 'it did not answer in time');
  }
  if (kind === 'UND_ERR_RES_EXCEEDED_MAX_SIZE') {
    return without('invalid', 'its answer does not end');
  }
  return without('unreachable', `there is no connection to it${kind === '' ? '' : ` (${kind})`}`);
}

/** Name and code of what is wrapped most deeply. */
function kindOf(error: unknown): readonly [name: string, code: string] {
  if (error instanceof AggregateError) return kindOf(error.errors[0]);
  if (!(error instanceof Error)) return ['', ''];
  if (error.cause instanceof Error) return kindOf(error.cause);
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return [error.name, code];
}

/** One by one from each list in turn, so that what is best of each comes before what is second. */
export function interleaved<T>(lists: readonly (readonly T[])[], limit: number): T[] {
  const longest = Math.max(0, ...lists.map((list) => list.length));
  const turns = Array.from({ length: longest }, (_, rank) =>
    lists.flatMap((list) => list.slice(rank, rank + 1)),
  );
  return turns.flat().slice(0, limit);
}
