import { randomUUID } from 'node:crypto';
import { MCP_PATH, speakMcp } from '../api/mcp.ts';
import { MCP_SESSION, OpenMcpCalls } from './open-mcp-calls.ts';
import { askWhileAllowed } from './research.ts';
import type { App, Services } from './services.ts';
import { refuseForeign } from './session-cookie.ts';

export function addMcp(app: App, services: Services): void {
  const { log, stopping } = services;
  const calls = new OpenMcpCalls();
  app.on('POST', MCP_PATH, async (c, next) => {
    // Prevents DNS rebinding by foreign web pages.
    if (c.req.header('origin') !== undefined) refuseForeign(c, services);
    await next();
  });
  app.openapi(speakMcp, async (c) => {
    const { answerMessage } = await import('../research/mcp/answer-message.ts');
    const caller = c.var.caller!;
    const request_id = c.var.request_id;
    const message = c.req.valid('json');
    const session = c.req.header(MCP_SESSION);
    const client = session === undefined ? undefined : `${caller.administrator_id} ${session}`;
    const canceled = client === undefined ? undefined : calls.begin(client, message);
    const answer = await answerMessage(c.req.raw, message, {
      ask: askWhileAllowed(app, services, caller, request_id),
      scopes: caller.scopes,
      signal: stopping,
      canceled,
      report: (err) => log.error({ err, request_id, msg: 'an MCP tool failed' }),
    });
    if (answer.body === null) return c.body(null, 202);
    const type = answer.headers.get('content-type')!;
    if (message.method === 'initialize') c.header(MCP_SESSION, randomUUID());
    const body =
      client === undefined || canceled === undefined
        ? answer.body
        : whenEnded(answer.body, () => calls.end(client, message));
    return c.body(body, answer.status as 200, { 'Content-Type': type });
  });
}

/** Passes a stream on, and calls `onEnd` once it is complete or its reader is gone. */
function whenEnded(
  stream: ReadableStream<Uint8Array>,
  onEnd: () => void,
): ReadableStream<Uint8Array> {
  const reader = stream.getReader();
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (!done) return controller.enqueue(value);
        onEnd();
        controller.close();
      } catch (error) {
        onEnd();
        controller.error(error);
      }
    },
    async cancel(reason) {
      onEnd();
      await reader.cancel(reason);
    },
  });
}
