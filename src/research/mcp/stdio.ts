import type { Readable, Writable } from 'node:stream';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { messagesOf } from './json-rpc-lines.ts';
import { makeMcpServer, type McpCaller } from './mcp-server.ts';

/** Serves MCP until a stream closes or the caller aborts, then cancels the runs of calls in progress. */
export async function serveStreams(
  input: Readable,
  output: Writable,
  caller: McpCaller,
): Promise<void> {
  const messages = messagesOf(input, output);
  const transport = new StdioServerTransport(messages, output);
  const calls = new Set<Promise<unknown>>();
  const gone = new AbortController();
  const own: McpCaller = {
    ...caller,
    signal: AbortSignal.any([caller.signal, gone.signal]),
    isGoneBySignal: true,
    onCall(ended) {
      calls.add(ended);
      void ended.then(() => calls.delete(ended));
    },
  };
  const handle = serveStdio(() => makeMcpServer(own), {
    transport,
    // The list of tools never changes.
    maxSubscriptions: 0,
    onerror: caller.report,
  });
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  const { onclose } = transport;
  Object.assign(transport, {
    onclose() {
      onclose?.();
      resolve();
    },
  });
  const close = (): void => void handle.close();
  caller.signal.addEventListener('abort', close);
  if (caller.signal.aborted) close();
  await closed;
  messages.destroy();
  caller.signal.removeEventListener('abort', close);
  gone.abort();
  await Promise.all(calls);
}
