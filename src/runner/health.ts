/** What others may ask a runner over HTTP: whether it turns, whether it trades, and figures. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { isSystemError, ServiceError } from '../errors.ts';
import type { RunnerMetrics } from './metrics.ts';

/** What keeps it from trading, in words; nothing when it trades. */
export type Missing = Readonly<Record<string, string>>;

export interface HealthServer {
  readonly url: string;
  close(): Promise<void>;
}

/** @throws ServiceError `invalid_setting` when it cannot listen there. */
export async function serveHealth(
  { host, port }: { readonly host: string; readonly port: number },
  missing: () => Missing,
  metrics: RunnerMetrics,
): Promise<HealthServer> {
  const server = createServer((request, response) => {
    const path = request.url!.split('?')[0];
    if (request.method !== 'GET' && request.method !== 'HEAD')
      send(response, 405, { error: 'GET' });
    else if (path === '/livez') send(response, 200, { status: 'ok' });
    else if (path === '/readyz') {
      const why = missing();
      const isReady = Object.keys(why).length === 0;
      send(response, isReady ? 200 : 503, {
        status: isReady ? 'ready' : 'not_ready',
        missing: why,
      });
    } else if (path === '/metrics') {
      void metrics.text().then(
        (text) => response.writeHead(200, { 'content-type': metrics.contentType }).end(text),
        () => send(response, 500, { error: 'failure' }),
      );
    } else send(response, 404, { error: 'not_found' });
  });
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new ServiceError('invalid_setting', `cannot listen at ${host}:${port} (${error.code})`, {
      remedy: 'Name another health.port in the configuration; 0 is any that is free.',
      cause: error,
    });
  }
  const { port: chosen } = server.address() as AddressInfo;
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${chosen}`,
    async close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}
