import { setTimeout as wait } from 'node:timers/promises';
import { ServiceError } from '../base/errors.ts';
import type { ServerSentEvent } from '../client/server-sent-events.ts';
import type { Context } from './verb.ts';

const RECONNECT_MS = 1000;

/**
 * Yields the data of server-sent events without end. Whenever the stream ends or the server cannot be
 * reached, opens the stream again after the last event.
 *
 * @param open opens the stream with the given headers.
 * @throws ServiceError of the server, unless the same request may succeed later
 */
export async function* followStream(
  open: (headers: { readonly 'last-event-id'?: string }) => AsyncIterable<ServerSentEvent>,
  { message }: Pick<Context, 'message'>,
  signal?: AbortSignal,
): AsyncGenerator<string, never, void> {
  let last: string | undefined;
  let isLost = false;
  for (;;) {
    try {
      for await (const { id, data } of open(last === undefined ? {} : { 'last-event-id': last })) {
        isLost = false;
        last = id;
        yield data;
      }
      isLost = false;
    } catch (error) {
      if (!(error instanceof ServiceError && error.retryable)) throw error;
      if (!isLost) message(`${error.message}; retrying until the server answers`);
      isLost = true;
    }
    await wait(RECONNECT_MS, undefined, { signal });
  }
}
