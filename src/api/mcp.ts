import { z } from '@hono/zod-openapi';
import { administrator, defineRoute, jsonBody, Problem } from './http.ts';

export const MCP_PATH = '/mcp';

const McpMessage = z
  .looseObject({
    jsonrpc: z.literal('2.0'),
    id: z
      .union([z.string(), z.number()])
      .optional()
      .describe('Present in a request, absent in a notification.'),
    method: z.string(),
    params: z.record(z.string(), z.unknown()).optional(),
  })
  .openapi('McpMessage', { description: 'A request or a notification (JSON-RPC 2.0).' });

const McpError = z
  .looseObject({
    jsonrpc: z.literal('2.0'),
    id: z.union([z.string(), z.number(), z.null()]).optional(),
    error: z.looseObject({ code: z.int(), message: z.string() }),
  })
  .openapi('McpError', { description: 'A protocol error (JSON-RPC 2.0).' });

const errorContent = {
  'application/problem+json': { schema: Problem },
  'application/json': { schema: McpError },
};

export const speakMcp = defineRoute({
  method: 'post',
  path: MCP_PATH,
  operationId: 'speakMcp',
  summary: 'Send a Model Context Protocol message',
  description:
    'Gives assistants the tools of research bots, limited to the scopes of the caller. The transport is Streamable HTTP, of revision 2026-07-28 and the revisions of 2025. Each message is independent: the session named by `Mcp-Session-Id` only finds the call that `notifications/cancelled` cancels. A closed connection cancels its call, too. `tools/list` returns the tools that the scopes allow. A failed tool call returns a result with `isError` and the `code`, `detail` and `remedy` of the API error. A browser must send an `Origin` of this server.',
  tags: ['Research'],
  security: administrator('read'),
  request: {
    body: jsonBody(McpMessage, {
      tools: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      bots: { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'list_bots' } },
      ready: { jsonrpc: '2.0', method: 'notifications/initialized' },
    }),
  },
  responses: {
    200: {
      description: 'A stream of server-sent events that ends with the response to the request.',
      content: { 'text/event-stream': { schema: z.string() } },
    },
    202: { description: 'The notification was accepted.' },
    400: {
      description: '`invalid_request`, or not a message of the protocol.',
      content: errorContent,
    },
    404: { description: 'The protocol has no such method.', content: errorContent },
  },
});
