import type {
  deleteSearch,
  EndedShard as ReceivedShard,
  followShards,
  openSearch,
  queueShards,
  storeInput,
} from '../api/searches.ts';
import type { EndedShard, ShardService } from '../backtest/shards/remote-trials.ts';
import { retry } from '../base/backoff.ts';
import { ServiceError } from '../base/errors.ts';
import { packageVersion } from '../base/package-version.ts';
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
  const { signal, message } = context;
  const server = await connect(context, signal);
  const persist = <T>(request: () => Promise<T>): Promise<T> => {
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
  };
  const body = { digest, title, package: packageVersion(), has_code: hasCode };
  const { search_id } = await persist(() =>
    server.call<typeof openSearch>('post', '/searches', { body }),
  );
  const params = { search_id };
  let last = '0';
  let stream: AsyncIterator<ServerSentEvent> | undefined;
  const nextEvent = async (): Promise<EndedShard> => {
    try {
      stream ??= server.stream<typeof followShards>('/searches/{search_id}/results', {
        params,
        headers: { 'last-event-id': last },
      });
      const { value, done } = await stream.next();
      if (done === true) {
        throw new ServiceError('server_unreachable', 'the server ended the stream of results');
      }
      last = value.id;
      return endedShard(JSON.parse(value.data) as ReceivedShard);
    } catch (error) {
      stream = undefined;
      throw error;
    }
  };
  return {
    async putInput(input) {
      const parts = Math.ceil(input.bytes.length / PART);
      for (let place = 0; place < parts; place++) {
        const part = input.bytes.subarray(place * PART, (place + 1) * PART);
        const data = Buffer.from(part).toString('base64');
        await persist(() =>
          server.call<typeof storeInput>('put', '/searches/{search_id}/inputs/{digest}/{place}', {
            params: { ...params, digest: input.digest, place: String(place) },
            body: { parts, data },
          }),
        );
      }
    },
    async submit(shards) {
      for (let first = 0; first < shards.length; first += SHARDS_OF_A_REQUEST) {
        const some = shards.slice(first, first + SHARDS_OF_A_REQUEST);
        const list = some.map(({ trials, ...shard }) => ({
          ...shard,
          trials: trials.map((trial) => ({ ...trial, params: { ...trial.params } })),
        }));
        await persist(() =>
          server.call<typeof queueShards>('post', '/searches/{search_id}/shards', {
            params,
            body: { shards: list, received: Number(last) },
          }),
        );
      }
    },
    nextEnded: async () => [await persist(nextEvent)],
    async close() {
      await stream?.return?.();
      // The signal of the command may be aborted already.
      const own = await connect(context);
      await own.call<typeof deleteSearch>('delete', '/searches/{search_id}', { params });
    },
  };
}

function endedShard({ id, result, error }: ReceivedShard): EndedShard {
  if (result === null) {
    const { message, remedy } = error!;
    return { id, outcome: { failure: message, ...(remedy !== undefined && { remedy }) } };
  }
  return { id, outcome: { ...result, parquet: Buffer.from(result.parquet, 'base64') } };
}
