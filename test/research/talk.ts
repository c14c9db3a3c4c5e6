import { exampleDocument } from '../../src/api/bots.ts';
import type { ChatParts, ChatTurn } from '../../src/api/research.ts';
import { serverSentEvents } from '../../src/client/server-sent-events.ts';
import { answererOf, CHAT_API_KEY } from '../../src/research/providers.ts';
import type { ProviderSettings } from '../../src/research/ai-sdk.ts';
import type { Answer, TestApp } from '../server/in-process.ts';

/** API key that only the provider may see. */
export const CANARY = 'sk-canary-6f1d0c';

export const modelAt = (kind: ProviderSettings['kind'], url: string) =>
  answererOf(
    { chat_provider: kind, chat_model: 'm-1', chat_base_url: url },
    { [CHAT_API_KEY]: CANARY },
  );

/** A research bot on `SPX`. */
export function researchDocument(slug: string, more: object = {}, name = 'A bot to talk with') {
  const document = exampleDocument(slug, 10);
  const spec = { ...(document['spec'] as object), kind: 'research', ...more };
  return { ...document, metadata: { name, slug }, spec };
}

export interface Talker {
  /** Requests the answer as one JSON document. */
  readonly ask: (body: object, headers?: Readonly<Record<string, string>>) => Promise<Answer>;
  /** Requests a stream and reads it to its end. */
  readonly stream: (body: object, headers?: Readonly<Record<string, string>>) => Promise<Heard>;
}

export interface Heard {
  readonly events: readonly (readonly [event: string, data: unknown])[];
  readonly text: string;
  readonly turn: ChatTurn;
}

export function talkerOf(server: TestApp, bearer: string, bot = 'talk'): Talker {
  const path = `/bots/${bot}/chat`;
  return {
    ask: (body, headers = {}) =>
      server.send('POST', path, { headers: { authorization: bearer, ...headers }, body }),
    async stream(body, headers = {}) {
      const answer = await server.app.request(path, {
        method: 'POST',
        headers: {
          authorization: bearer,
          accept: 'text/event-stream',
          'content-type': 'application/json',
          ...headers,
        },
        body: JSON.stringify(body),
      });
      if (answer.status !== 200) throw new Error(await answer.text());
      const [begun, ...events] = await Array.fromAsync(
        serverSentEvents(answer.body!),
        ({ event, data }) => [event, JSON.parse(data) as unknown] as const,
      );
      if (begun?.[0] !== 'begun') throw new Error('the stream does not start with `begun`');
      const texts = events.flatMap(([event, data]) =>
        event === 'text' ? (data as ChatParts['text']).text : [],
      );
      const turn = events.find(([event]) => event === 'turn')![1] as ChatTurn;
      return { events, text: texts.join(''), turn };
    },
  };
}
