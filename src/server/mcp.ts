import { MCP_PATH, speakMcp } from '../api/mcp.ts';
import { askWhileAllowed } from './research.ts';
import type { App, Services } from './services.ts';
import { refuseForeign } from './session-cookie.ts';

export function addMcp(app: App, services: Services): void {
  const { log, stopping } = services;
  app.on('POST', MCP_PATH, async (c, next) => {
    // Prevents DNS rebinding by foreign web pages.
    if (c.req.header('origin') !== undefined) refuseForeign(c, services);
    await next();
  });
  app.openapi(speakMcp, async (c) => {
    const { answerMessage } = await import('../research/mcp/answer-message.ts');
    const caller = c.var.caller!;
    const request_id = c.var.request_id;
    const answer = await answerMessage(c.req.raw, c.req.valid('json'), {
      ask: askWhileAllowed(app, services, caller, request_id),
      scopes: caller.scopes,
      signal: stopping,
      report: (err) => log.error({ err, request_id, msg: 'an MCP tool failed' }),
    });
    if (answer.body === null) return c.body(null, 202);
    const type = answer.headers.get('content-type')!;
    return c.body(answer.body, answer.status as 200, { 'Content-Type': type });
  });
}
