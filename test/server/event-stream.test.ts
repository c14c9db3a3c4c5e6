import { once } from 'node:events';
import { request, type ClientRequest, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { exampleDocument } from '../../src/api/bots.ts';
import { newTestApp, type TestApp } from './in-process.ts';

const MOST = 100;
const PATH = '/bots/sma/state/events/stream';

let app: TestApp;
let server: Server;
beforeEach(async () => {
  app = await newTestApp();
  server = createAdaptorServer({ fetch: app.app.fetch }) as Server;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const authorization = await app.bearer('write');
  const body = { document: exampleDocument('sma', 10) };
  await app.send('POST', '/bots', { headers: { authorization }, body });
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await app.close();
});

interface Opened {
  readonly sent: ClientRequest;
  readonly answer: IncomingMessage;
}

async function open(authorization: string, method = 'GET'): Promise<Opened> {
  const { port } = server.address() as AddressInfo;
  const sent = request({ port, path: PATH, method, headers: { authorization }, agent: false });
  sent.on('error', () => {});
  sent.end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  // An open stream sends a comment at once.
  if (answer.statusCode === 200 && method === 'GET') await once(answer, 'data');
  return { sent, answer };
}

test('the number of open streams of an administrator is limited, and closing one allows another', async () => {
  const [ada, bob] = await Promise.all([app.bearer('read'), app.bearer('read')]);
  // These streams are never read.
  for (let i = 0; i < 3; i++) expect((await open(ada, 'HEAD')).answer.statusCode).toBe(200);
  const streams = await Promise.all(Array.from({ length: MOST }, () => open(ada)));
  expect(new Set(streams.map(({ answer }) => answer.statusCode))).toEqual(new Set([200]));

  const { answer: refused } = await open(ada);
  expect(refused.statusCode).toBe(429);
  expect(refused.headers['retry-after']).toBe('5');
  expect(JSON.parse(Buffer.concat(await refused.toArray()).toString())).toMatchObject({
    code: 'rate_limited',
    reason: 'streams',
    retryable: true,
  });
  expect((await open(bob)).answer.statusCode).toBe(200);

  // Without closing the connection, like a machine that is switched off.
  streams[0]!.sent.socket!.resetAndDestroy();
  const status = async (): Promise<number | undefined> => (await open(ada)).answer.statusCode;
  await vi.waitFor(async () => expect(await status()).toBe(200), { interval: 5 });
  expect(await status()).toBe(429);

  const ended = Promise.all(streams.slice(1).map(({ answer }) => once(answer, 'end')));
  app.stop();
  await ended;
  expect(await status()).toBe(200);
});

test('a client that disconnects during a read of the database is no failure', async () => {
  const authorization = await app.bearer('read');
  const openHere = async () => {
    const { body } = await app.app.request(PATH, { headers: { authorization } });
    const reader = body!.getReader();
    // The first message is a comment, the second holds the events of the bot.
    expect(Buffer.from((await reader.read()).value!).toString()).toMatch(/^:/);
    return reader;
  };
  const left = await openHere();
  const events = left.read();
  await left.cancel();
  expect(await events).toMatchObject({ done: true });
  // By the time a later read has ended, the canceled one has too.
  const stays = await openHere();
  expect(Buffer.from((await stays.read()).value!).toString()).toContain('bot.created');
  await stays.cancel();
  expect(app.log.filter((line) => line.includes('failed'))).toEqual([]);
});
