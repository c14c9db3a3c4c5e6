import type {
  deleteSearch,
  EndedShard as ReceivedShard,
  followShards,
  openSearch,
  queueShards,
  storeInput,
} from '../api/searches.ts';
import type { EndedShard, ShardService } from '../backtest/shards/remote-trials.ts';
import type { EncodedInput } from '../backtest/shards/search-input.ts';
import type { Shard } from '../backtest/shards/shard.ts';
import { retry } from '../base/backoff.ts';
import { ServiceError } from '../base/errors.ts';
import { packageVersion } from '../base/package-version.ts';
import type { Client } from '../client/client.ts';
import type { ServerSentEvent } from '../client/server-sent-events.ts';
import { connect } from './connect.ts';
import type { Context } from './verb.ts';

/** Bytes of a part of an input: a multiple of three for base64. */
const PART = 3 << 16;
const SHARDS_OF_A_REQUEST = 16;
const RETRY = { shortestMs: 1000, longestMs: 10_000 };
/** Longest time without an answer of the server. */
const MOST_SILENCE_MS = 10 * 60_000;

export interface SearchOnServer {
  /** Identifies the command, so that an interrupted one resumes. */
  readonly digest: string;
  readonly title: string;
  readonly hasCode: boolean;
}

/**
 * Opens a search on the server of the setting `server_url`, whose workers run its shards. Requests are
 * repeated for ten minutes while the server or its database does not answer.
 *
 * @throws ServiceError `conflict` if the server has another version
 */
export async function openServerShards(
  context: Context,
  { digest, title, hasCode }: SearchOnServer,
): Promise<ShardService> {
  const server = await connect(context, context.signal);
  const body = { digest, title, package: packageVersion(), has_code: hasCode };
  const { search_id } = await persist(context, () =>
    server.call<typeof openSearch>('post', '/searches', { body }),
  );
  return new ServerShards(context, server, search_id);
}

class ServerShards implements ShardService {
  /** Enough for hundreds of workers, and few enough to keep little in the database. */
  readonly mostOpen = 512;
  readonly #context: Context;
  readonly #server: Client;
  readonly #params: { readonly search_id: string };
  /** Id of the last event that was received. */
  #last = '0';
  #events: AsyncIterator<ServerSentEvent> | undefined;

  constructor(context: Context, server: Client, search_id: string) {
    this.#context = context;
    this.#server = server;
    this.#params = { search_id };
  }

  async putInput({ digest, bytes }: EncodedInput): Promise<void> {
    const parts = Math.ceil(bytes.length / PART);
    for (let place = 0; place < parts; place++) {
      const part = bytes.subarray(place * PART, (place + 1) * PART);
      const params = { ...this.#params, digest, place: String(place) };
      const body = { parts, data: Buffer.from(part).toString('base64') };
      await persist(this.#context, () =>
        this.#server.call<typeof storeInput>(
          'put',
          '/searches/{search_id}/inputs/{digest}/{place}',
          { params, body },
        ),
      );
    }
  }

  async submit(shards: readonly Shard[]): Promise<void> {
    for (let first = 0; first < shards.length; first += SHARDS_OF_A_REQUEST) {
      const some = shards.slice(first, first + SHARDS_OF_A_REQUEST).map((shard) => ({
        ...shard,
        trials: shard.trials.map((trial) => ({ ...trial, params: { ...trial.params } })),
      }));
      const body = { shards: some, received: Number(this.#last) };
      await persist(this.#context, () =>
        this.#server.call<typeof queueShards>('post', '/searches/{search_id}/shards', {
          params: this.#params,
          body,
        }),
      );
    }
  }

  async nextEnded(): Promise<readonly EndedShard[]> {
    return [await persist(this.#context, () => this.#nextEvent())];
  }

  async close(): Promise<void> {
    await this.#events?.return?.();
    // The signal of the command may be aborted already.
    const server = await connect(this.#context);
    await server.call<typeof deleteSearch>('delete', '/searches/{search_id}', {
      params: this.#params,
    });
  }

  async #nextEvent(): Promise<EndedShard> {
    try {
      this.#events ??= this.#server.stream<typeof followShards>('/searches/{search_id}/results', {
        params: this.#params,
        headers: { 'last-event-id': this.#last },
      });
      const { value, done } = await this.#events.next();
      if (done === true) {
        throw new ServiceError('server_unreachable', 'the server ended the stream of results');
      }
      this.#last = value.id;
      return endedShard(JSON.parse(value.data) as ReceivedShard);
    } catch (error) {
      this.#events = undefined;
      throw error;
    }
  }
}

/** Repeats a request while the server does not answer. */
function persist<T>({ signal, message }: Context, request: () => Promise<T>): Promise<T> {
  let failedAt: number | undefined;
  return retry(request, {
    ...RETRY,
    signal,
    shouldRetry(error) {
      if (signal.aborted || !(error instanceof ServiceError) || !error.retryable) return false;
      if (failedAt === undefined) message(`waiting for the server: ${error.message}`);
      failedAt ??= performance.now();
      return performance.now() - failedAt < MOST_SILENCE_MS;
    },
  });
}

function endedShard({ id, result, error }: ReceivedShard): EndedShard {
  if (result === null) {
    const { message, remedy } = error!;
    return { id, outcome: { failure: message, ...(remedy !== undefined && { remedy }) } };
  }
  return { id, outcome: { ...result, parquet: Buffer.from(result.parquet, 'base64') } };
}
