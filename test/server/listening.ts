import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import type { TestApp } from './in-process.ts';

/** Serves an app on a free port. */
export interface Listening {
  readonly url: string;
  readonly close: () => void;
}

export async function listen({ fetch }: TestApp['app']): Promise<Listening> {
  const server = createAdaptorServer({ fetch }) as Server;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
