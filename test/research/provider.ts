import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import type { ProviderSettings } from '../../src/research/ai-sdk.ts';

type Kind = ProviderSettings['kind'];

/** Response of the model to one request. */
export type Reply =
  | {
      /** Streamed pieces of text. */
      readonly say?: readonly string[];
      /** Tool calls with their arguments as JSON, which may be invalid. */
      readonly call?: readonly (readonly [tool: string, args: string])[];
      /** Fault after the text; by default the response ends normally. */
      readonly ending?: 'stall' | 'break off' | 'end early';
      /** `null`: the provider reports no token counts. */
      readonly tokens?: readonly [input: number, output: number] | null;
    }
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body: string;
    };

/** A local provider of language models with scripted replies. */
export interface FakeProvider {
  readonly url: string;
  /** Received requests; each could be charged. */
  readonly requests: { readonly headers: object; readonly body: object }[];
  /** Next replies; when none are left, the reply is `ok`. */
  readonly replies: (Reply | ((body: object) => Reply))[];
  readonly close: () => Promise<void>;
}

export async function startProvider(kind: Kind): Promise<FakeProvider> {
  const requests: FakeProvider['requests'] = [];
  const replies: FakeProvider['replies'] = [];
  const server = createServer((request, answer) => {
    void (async () => {
      const body = (await json(request)) as object;
      requests.push({ headers: request.headers, body });
      const next = replies.shift() ?? { say: ['ok'] };
      const reply = typeof next === 'function' ? next(body) : next;
      if ('status' in reply) {
        answer.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers });
        answer.end(reply.body);
        return;
      }
      answer.writeHead(200, { 'content-type': 'text/event-stream' });
      const last = (kind === 'anthropic' ? anthropic : openAi)(answer, reply);
      if (reply.ending === 'stall') return;
      if (reply.ending === 'break off') setImmediate(() => answer.destroy());
      else if (reply.ending === 'end early') answer.end();
      else answer.end(last);
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    replies,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

type Streamed = Exclude<Reply, { readonly status: number }>;

/** See https://platform.openai.com/docs/api-reference/chat-streaming. @returns the last chunks. */
function openAi(
  answer: ServerResponse,
  { say = [], call = [], tokens = [10, 5] }: Streamed,
): string {
  const chunk = (fields: object): string =>
    `data: ${JSON.stringify({ id: 'c1', object: 'chat.completion.chunk', created: 1, model: 'm', ...fields })}\n\n`;
  const choice = (delta: object, finish_reason: string | null = null): string =>
    chunk({ choices: [{ index: 0, delta, finish_reason }] });
  for (const content of say) answer.write(choice({ role: 'assistant', content }));
  for (const [index, [name, args]] of call.entries()) {
    const id = `call_${index}`;
    answer.write(
      choice({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
    );
    for (const part of [args.slice(0, 3), args.slice(3)]) {
      answer.write(choice({ tool_calls: [{ index, function: { arguments: part } }] }));
    }
  }
  const usage = tokens && {
    prompt_tokens: tokens[0],
    completion_tokens: tokens[1],
    total_tokens: tokens[0] + tokens[1],
  };
  return [
    choice({}, call.length > 0 ? 'tool_calls' : 'stop'),
    ...(usage ? [chunk({ choices: [], usage })] : []),
    'data: [DONE]\n\n',
  ].join('');
}

/** See https://docs.anthropic.com/en/docs/build-with-claude/streaming. @returns the last events. */
function anthropic(answer: ServerResponse, { say = [], call = [], tokens }: Streamed): string {
  const [input_tokens, output_tokens] = tokens ?? [10, 5];
  const event = (type: string, fields: object = {}): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;
  const message = { id: 'm1', type: 'message', role: 'assistant', content: [], model: 'm' };
  const usage = { input_tokens, output_tokens: 1 };
  answer.write(
    event('message_start', {
      message: { ...message, stop_reason: null, stop_sequence: null, usage },
    }),
  );
  const block = (index: number, content_block: object, deltas: readonly object[]): void => {
    answer.write(event('content_block_start', { index, content_block }));
    for (const delta of deltas) answer.write(event('content_block_delta', { index, delta }));
  };
  if (say.length > 0) {
    block(
      0,
      { type: 'text', text: '' },
      say.map((text) => ({ type: 'text_delta', text })),
    );
  }
  for (const [i, [name, args]] of call.entries()) {
    const index = i + 1;
    block(index, { type: 'tool_use', id: `toolu_${i}`, name, input: {} }, [
      { type: 'input_json_delta', partial_json: args.slice(0, 3) },
      { type: 'input_json_delta', partial_json: args.slice(3) },
    ]);
  }
  const blocks = [...(say.length > 0 ? [0] : []), ...call.map((_, i) => i + 1)];
  const stop_reason = call.length > 0 ? 'tool_use' : 'end_turn';
  return [
    ...blocks.map((index) => event('content_block_stop', { index })),
    event('message_delta', {
      delta: { stop_reason, stop_sequence: null },
      usage: { output_tokens },
    }),
    event('message_stop'),
  ].join('');
}
