/** Small HTTP server for the probes and metrics of a process. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ServiceError } from './errors.ts';
import { isSystemError } from './system-errors.ts';

export interface ProbeAnswer {
  readonly status: number;
  /** An object is sent as JSON. */
  readonly body: object | string;
  readonly contentType?: string;
}

export interface ProbeServer {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Serves GET and HEAD requests for these paths without authentication.
 * @param remedy for the error if it cannot listen.
 * @throws ServiceError `invalid_setting` if it cannot listen.
 */
export async function serveProbes(
  { host, port }: { readonly host: string; readonly port: number },
  answers: Readonly<Record<string, () => ProbeAnswer | Promise<ProbeAnswer>>>,
  remedy: string,
): Promise<ProbeServer> {
  const server = createServer((request, response) => {
    const path = request.url!.split('?')[0]!;
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      send(response, { status: 405, body: { error: 'GET' } });
    } else if (!Object.hasOwn(answers, path)) {
      send(response, { status: 404, body: { error: 'not_found' } });
    } else {
      void answerTo(answers[path]!).then(
        (answer) => send(response, answer),
        () => send(response, { status: 500, body: { error: 'failure' } }),
      );
    }
  });
  server.listen(port, host);
  try {
    await once(server, 'listening');
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new ServiceError('invalid_setting', `cannot listen on ${host}:${port} (${error.code})`, {
      remedy,
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

async function answerTo(answer: () => ProbeAnswer | Promise<ProbeAnswer>): Promise<ProbeAnswer> {
  return answer();
}

function send(
  response: ServerResponse,
  { status, body, contentType = 'text/plain' }: ProbeAnswer,
): void {
  const isText = typeof body === 'string';
  response
    .writeHead(status, { 'content-type': isText ? contentType : 'application/json' })
    .end(isText ? body : JSON.stringify(body));
}
