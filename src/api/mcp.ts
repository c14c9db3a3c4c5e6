import { z } from '@hono/zod-openapi';
import { administrator, defineRoute, json, Problem } from './http.ts';

export const MCP_PATH = '/mcp';

const McpMessage = z
  .looseObject({
    jsonrpc: z.literal('2.0'),
    id: z
      .union([z.string(), z.number()])
      .optional()
      .openapi({ description: 'Of a request; a notification has none.' }),
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
  .openapi('McpError', { description: 'What the protocol refuses (JSON-RPC 2.0).' });

const refused = {
  'application/problem+json': { schema: Problem },
  'application/json': { schema: McpError },
};

export const speakMcp = defineRoute({
  method: 'post',
  path: MCP_PATH,
  operationId: 'speakMcp',
  summary: 'Speak the Model Context Protocol',
  description:
    'For assistants: the tools of research bots, with the scopes of the caller and no more. Streamable HTTP without sessions, of the revision 2026-07-28 and those of 2025; each message stands for itself. `tools/list` has the tools that the scopes allow; what a tool refuses is a result with `isError`, with `code`, `detail` and `remedy` as the API has them. A browser must send an `Origin` of this server.',
  tags: ['Research'],
  security: administrator('read'),
  request: {
    body: json(McpMessage, {
      tools: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
      bots: { jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'list_bots' } },
      ready: { jsonrpc: '2.0', method: 'notifications/initialized' },
    }),
  },
  responses: {
    200: {
      description: 'The answer to a request, as a stream of server-sent events that ends with it.',
      content: { 'text/event-stream': { schema: z.string() } },
    },
    202: { description: 'A notification was heard.' },
    400: { description: '`invalid_request`, or no message of the protocol.', content: refused },
    404: { description: 'The protocol has no such method.', content: refused },
  },
});
