import { Readable } from 'node:stream';
import type { getOwnToken } from '../../api/administrators.ts';
import { connect } from '../connect.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  summary: 'let an assistant use the tools of research bots',
  description:
    'Serves the Model Context Protocol on stdin and stdout, for an assistant that starts this command. The tools read bots, runs, events, market data and documents of the server. With a token for the scope write, they also run backtests and propose versions. They never start, stop or change a bot. The command ends when its input ends. The server offers the same tools at /mcp.',
  settings: ['server_url'],
  examples: ['mcp', 'mcp --url https://bots.example'],
  async run(context) {
    // Connects without the interrupt signal, so that runs can still be canceled after the assistant
    // has disconnected.
    const server = await connect(context);
    const token = await server.call<typeof getOwnToken>('get', '/identity/token', {});
    const { askThrough } = await import('../../research/mcp/call-remote-api.ts');
    const { serveStreams } = await import('../../research/mcp/stdio.ts');
    const { io, message, settings } = context;
    message(`serving MCP for ${token.administrator} at ${settings.server_url}`);
    await serveStreams(io.stdin, io.stdout, {
      ask: askThrough(server),
      scopes: new Set(token.scopes),
      signal: context.signal,
      report: (error) => message(error instanceof Error ? error.message : String(error)),
    });
    context.signal.throwIfAborted();
    // Only the protocol is written to stdout, even with --json.
    return { data: undefined, stream: Readable.from([]), show() {} };
  },
});
