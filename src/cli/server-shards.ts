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
import { ServiceError } from '../base/errors.ts';
import { packageVersion } from '../base/package-version.ts';
import type { Client } from '../client/client.ts';
import type { ServerSentEvent } from '../client/server-sent-events.ts';
import { connect } from './connect.ts';
import { persist } from './persist.ts';
import type { Context } from './verb.ts';

/** Bytes of a part of an input: a multiple of three for base64. */
const PART = 3 << 16;
const SHARDS_OF_A_REQUEST = 16;

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
  const { search_id } = await persist(context, 'the server', () =>
    server.call<typeof openSearch>('post', '/searches', { body }),
  );
  return new ServerShards(context, server, search_id);
}

class ServerShards implements ShardService {
  /** Enough shards for hundreds of workers, and few enough to keep the database small. */
  readonly mostOpen = 512;
  readonly #context: Context;
  readonly #server: Client;
  readonly #params: { readonly search_id: string };
  /** Id of the last event that was received. */
  #last = '0';
  /** Last printed reason why no shard runs. */
  #reason: string | undefined;
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
      await persist(this.#context, 'the server', () =>
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
      await persist(this.#context, 'the server', () =>
        this.#server.call<typeof queueShards>('post', '/searches/{search_id}/shards', {
          params: this.#params,
          body,
        }),
      );
    }
  }

  async nextEnded(): Promise<readonly EndedShard[]> {
    return [await persist(this.#context, 'the server', () => this.#nextEvent())];
  }

  async close(): Promise<void> {
    await this.#events?.return?.();
    // The signal of the command may be aborted already.
    const server = await connect(this.#context);
    await server.call<typeof deleteSearch>('delete', '/searches/{search_id}', {
      params: this.#params,
    });
  }

  #warn(reason: string): void {
    if (reason !== this.#reason) this.#context.message(`warning: ${reason}`);
    this.#reason = reason;
  }

  async #nextEvent(): Promise<EndedShard> {
    try {
      this.#events ??= this.#server.stream<typeof followShards>('/searches/{search_id}/results', {
        params: this.#params,
        headers: { 'last-event-id': this.#last },
      });
      for (;;) {
        const { value, done } = await this.#events.next();
        if (done === true) {
          throw new ServiceError('server_unreachable', 'the server ended the stream of results', {
            remedy: 'Run the same command again to resume.',
          });
        }
        if (value.event === 'shard') {
          this.#last = value.id;
          this.#reason = undefined;
          return endedShard(JSON.parse(value.data) as ReceivedShard);
        }
        if (value.event === 'waiting') this.#warn((JSON.parse(value.data) as Waiting).reason);
      }
    } catch (error) {
      this.#events = undefined;
      throw error;
    }
  }
}

interface Waiting {
  readonly reason: string;
}

function endedShard({ id, result, error }: ReceivedShard): EndedShard {
  if (result === null) {
    const { message, remedy } = error!;
    return { id, outcome: { failure: message, ...(remedy !== undefined && { remedy }) } };
  }
  return { id, outcome: { ...result, parquet: Buffer.from(result.parquet, 'base64') } };
}
