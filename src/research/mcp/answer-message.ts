import { createMcpHandler } from '@modelcontextprotocol/server';
import { makeMcpServer, type McpCaller } from './mcp-server.ts';

/**
 * Answers one MCP message with a server of its own. A request gets a stream of server-sent events,
 * which begins at once even if the tool is slow; a notification gets 202 without a body; an invalid
 * message gets a JSON-RPC error as JSON.
 *
 * @param message the parsed body of the request.
 */
export function answerMessage(
  request: Request,
  message: unknown,
  caller: McpCaller,
): Promise<Response> {
  const headers = new Headers(request.headers);
  // The server always answers with an event stream, whatever the client accepts.
  headers.set('accept', 'application/json, text/event-stream');
  const { url, signal } = request;
  const handler = createMcpHandler(() => makeMcpServer(caller), {
    responseMode: 'sse',
    // The list of tools never changes.
    maxSubscriptions: 0,
  });
  const forwarded = new Request(url, { method: 'POST', headers, signal });
  return handler.fetch(forwarded, { parsedBody: message });
}
