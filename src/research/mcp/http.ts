import { createMcpHandler } from '@modelcontextprotocol/server';
import { makeMcpServer, type McpCaller } from './server.ts';

/**
 * Answers one message of the protocol: its server lives as long as that. A request is answered by a
 * stream of server-sent events, which begins at once however long a tool takes, a notification by
 * nothing (202), and what the protocol refuses by one of its errors as JSON.
 *
 * @param message the body of the request, parsed.
 */
export function answerMessage(
  request: Request,
  message: unknown,
  caller: McpCaller,
): Promise<Response> {
  const headers = new Headers(request.headers);
  // There is one way to answer, whatever the client says that it takes.
  headers.set('accept', 'application/json, text/event-stream');
  const { url, signal } = request;
  const handler = createMcpHandler(() => makeMcpServer(caller), {
    responseMode: 'sse',
    // Nothing that could be subscribed to ever changes.
    maxSubscriptions: 0,
  });
  const forwarded = new Request(url, { method: 'POST', headers, signal });
  return handler.fetch(forwarded, { parsedBody: message });
}
