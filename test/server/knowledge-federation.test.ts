import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Decision } from '../../src/gate/decide.ts';
import { federationOf } from '../../src/research/knowledge/federation.ts';
import { newWorld, type World } from '../identity/people.ts';
import { newTestApp, type Answer, type TestApp } from './in-process.ts';
import { serveHere, type ServerHere } from './running.ts';
import { isAtLength } from '../length.ts';

const VALID: Decision = { allowed: true, status: 'valid' };

/** The searching server, and its license. */
let server: TestApp;
let license: Decision;
let authorization: string;
/** Another server, with a token for it. */
let world: World;
let tokyo: ServerHere;
let token: string;

const others: Server[] = [];

beforeAll(async () => {
  server = await newTestApp({}, { check: () => license });
  authorization = await server.bearer('read', 'write');
  world = await newWorld('sqlite');
  world.now = Date.now();
  const person = await world.newPerson();
  token = await person.token('read', 'write');
  tokyo = await serveHere(world.database);
  for (const [i, text] of ['Limits of drawdown.', 'The drawdown, and the drawdown.'].entries()) {
    await server.send('POST', '/knowledge/documents', {
      headers: { authorization },
      body: { name: `own-${i}`, text },
    });
    const { status } = await fetch(`${tokyo.url}/knowledge/documents`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: `theirs-${i}`, text }),
    });
    assert.equal(status, 201);
  }
});

beforeEach(() => {
  license = VALID;
});

afterAll(async () => {
  await Promise.all([server.close(), tokyo.stop()]);
  await world.close();
  for (const other of others) {
    other.close();
    other.closeAllConnections();
  }
});

/** A server with this handler. @returns its origin. */
async function serve(listener: RequestListener): Promise<string> {
  const other = createServer(listener);
  others.push(other);
  other.listen(0, '127.0.0.1');
  await once(other, 'listening');
  return `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
}

/** A server that returns this body as if it were service-local. */
const answering = (body: unknown, status = 200): Promise<string> =>
  serve((_, answer) => {
    answer.writeHead(status, { 'Service-Name': 'service-local' }).end(JSON.stringify(body));
  });

const SECRET = 'slt_of-this-nobody-tells';

/** Searches the instances at these origins, by name, and the server itself. */
async function search(
  urls: Readonly<Record<string, string>>,
  query = 'q=drawdown&federated=true',
): Promise<Answer> {
  const instances = Object.entries(urls).map(([name, url]) => ({
    name,
    url,
    token_env: `${name.toUpperCase()}_TOKEN`,
  }));
  const env = {
    ...Object.fromEntries(instances.map(({ token_env }) => [token_env, SECRET])),
    TOKYO_TOKEN: token,
    NOBODY_TOKEN: '',
  };
  const { federation, log } = server.services;
  Object.assign(federation, federationOf({ instances, timeout_seconds: 1.5 }, env, log));
  return server.send('GET', `/knowledge/search?${query}`, { headers: { authorization } });
}

/** The instance of each passage, and the status of each instance. */
function told({ status, body }: Answer) {
  const { items, instances } = body as {
    items: { document: string; instance: string | null }[];
    instances: { name: string; status: string; reason: string | null }[];
  };
  return {
    status,
    found: items.map(({ document, instance }) => [instance, document]),
    instances: instances.map((one) => [one.name, one.status, one.reason]),
  };
}

test('a federated search interleaves the passages of all instances and names the instance of each', async () => {
  const answer = await search({ tokyo: tokyo.url });
  expect(told(answer)).toEqual({
    status: 200,
    found: [
      [null, 'own-1'],
      ['tokyo', 'theirs-1'],
      [null, 'own-0'],
      ['tokyo', 'theirs-0'],
    ],
    instances: [['tokyo', 'answered', null]],
  });
  const few = await search({ tokyo: tokyo.url }, 'q=drawdown&federated=true&limit=3');
  expect(told(few).found).toHaveLength(3);
  expect(tokyo.log()).toMatch('GET');
  expect(tokyo.log()).not.toMatch(/federated=true/);
});

test('an instance that receives a federated search does not forward it', async () => {
  const asked: string[] = [];
  const url = await serve((request, answer) => {
    asked.push(request.url!);
    answer.writeHead(200, { 'Service-Name': 'service-local' }).end('{"items":[],"instances":[]}');
  });
  await search({ tokyo: url });
  expect(asked).toEqual(['/knowledge/search?q=drawdown&limit=10&federated=false']);
});

test.runIf(isAtLength)(
  'instances that do not answer are named, and do not delay the answers of others',
  async () => {
    const stalled = await serve(() => {});
    const halting = await serve((_, answer) => {
      answer.writeHead(200, { 'Service-Name': 'service-local' }).write('{"items":[');
    });
    const closed = await serve(() => {});
    others.at(-1)!.close();
    const answer = await search({
      stalled,
      halting,
      closed,
      tokyo: tokyo.url,
      wrong: tokyo.url,
      nobody: tokyo.url,
      html: await serve((_, page) => void page.end('<h1>It works!</h1>')),
      moved: await serve((_, page) => void page.writeHead(302, { location: tokyo.url }).end()),
      nonsense: await answering({ items: [{ text: 1 }] }),
      relayed: await answering({
        items: [
          {
            document_id: 'a',
            document: 'a',
            passage_id: 'a:1',
            heading: [],
            lines: { from: 1, to: 1 },
            text: 'drawdown',
            score: 1,
            instance: 'elsewhere',
          },
        ],
      }),
      endless: await serve((_, page) => {
        page.writeHead(200, { 'Service-Name': 'service-local' });
        page.end(Buffer.alloc(5 * 1024 * 1024, 'a'));
      }),
      echo: await serve((request, page) => {
        page.writeHead(403, { 'Service-Name': 'service-local' });
        const detail = `not ${request.headers.authorization}`;
        page.end(JSON.stringify({ code: 'not_allowed', detail, request_id: '1' }));
      }),
    });
    const { found, instances } = told(answer);
    expect(found.map(([instance]) => instance)).toEqual([null, 'tokyo', null, 'tokyo']);
    expect(instances).toEqual([
      ['stalled', 'timed_out', 'it did not answer in time'],
      ['halting', 'timed_out', 'it did not answer in time'],
      ['closed', 'unreachable', 'cannot connect (ECONNREFUSED)'],
      ['tokyo', 'answered', null],
      ['wrong', 'refused', 'it rejected the token in WRONG_TOKEN (not_authenticated)'],
      [
        'nobody',
        'refused',
        'there is no token for nobody: NOBODY_TOKEN is not set in the environment of this server',
      ],
      ['html', 'invalid', 'the URL does not belong to a service-local server'],
      ['moved', 'invalid', 'the URL does not belong to a service-local server'],
      ['nonsense', 'invalid', 'its response is not a search result'],
      ['relayed', 'invalid', 'its response is not a search result'],
      ['endless', 'invalid', 'its response is too large'],
      ['echo', 'refused', 'it rejected the token in ECHO_TOKEN (not_allowed)'],
    ]);
    const all = [JSON.stringify(answer.body), ...server.log].join('\n');
    expect(all).toMatch('knowledge search at stalled failed: it did not answer in time');
    expect(all).not.toMatch(SECRET);
    expect(all).not.toMatch(token);
  },
);

test.runIf(isAtLength)('an instance that asks for a retry gets no additional time', async () => {
  let asked = 0;
  const again = await serve((_, answer) => {
    asked += 1;
    const [status, body] = asked === 1 ? ([401, '{}'] as const) : ([200, '{"items":[]}'] as const);
    const headers = { 'Service-Name': 'service-local', 'Service-Nonce': 'n' };
    // Both together exceed the limit, each alone does not, and the first leaves a busy machine time.
    setTimeout(() => answer.writeHead(status, headers).end(body), asked === 1 ? 300 : 1400);
  });
  const { instances } = told(await search({ again }));
  expect(instances).toEqual([['again', 'timed_out', 'it did not answer in time']]);
  expect(asked).toBe(2);
});

test('a federated search requires a license, and reports the grace period', async () => {
  license = { allowed: true, status: 'grace' };
  const answer = await search({ tokyo: tokyo.url });
  expect(answer.headers.get('x-service-license-status')).toBe('grace');
  license = { allowed: false, reason: 'expired', detail: 'It is over.' };
  expect(await search({ tokyo: tokyo.url })).toMatchObject({
    status: 403,
    body: { code: 'license_invalid', reason: 'expired' },
  });
  expect(told(await search({ tokyo: tokyo.url }, 'q=drawdown'))).toMatchObject({
    status: 200,
    instances: [],
  });
});

test('a federated search without configured instances is rejected', async () => {
  const { body } = await search({});
  expect(body).toMatchObject({ status: 409, code: 'conflict', reason: 'no_instance' });
});
