/// <reference lib="dom" />

import type { Problem } from '../../../api/http.ts';
import { serverSentEvents } from '../../../client/server-sent-events.ts';

/** Safari cannot iterate over a stream. */
export async function* chunksOf(
  body: ReadableStream<Uint8Array>,
): AsyncGenerator<Uint8Array, void> {
  const reader = body.getReader();
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    yield value;
  }
}

/**
 * Asks a question until its answer ends, also after the connection broke: a repeated request with
 * the same idempotency key repeats the answer from its start.
 *
 * @param take receives each part; `restart` comes before the first part of each attempt.
 * @returns the reason if the server refused the question; undefined when the answer ended.
 */
export async function streamAnswer(
  path: string,
  init: RequestInit,
  take: (event: string, data: unknown) => void,
): Promise<string | undefined> {
  const RETRY_MS = 1000;
  for (;;) {
    try {
      const answer = await fetch(path, init);
      if (!answer.ok) {
        const { detail, remedy } = (await answer.json()) as Problem;
        return remedy === undefined ? detail : `${detail}. ${remedy}`;
      }
      take('restart', undefined);
      for await (const { event, data } of serverSentEvents(chunksOf(answer.body!))) {
        take(event, JSON.parse(data));
        if (event === 'turn') return undefined;
      }
    } catch {
      // The server continues the answer.
    }
    take('broken', undefined);
    await new Promise((resolve) => {
      setTimeout(resolve, RETRY_MS);
    });
  }
}
