import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer as createSocketServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { once } from 'node:events';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { streamBotEvents } from '../../src/api/bot-state.ts';
import type { getHealth } from '../../src/api/health.ts';
import type {
  createCustomer,
  getCustomer,
  listContracts,
  listCustomers,
} from '../../src/api/registry.ts';
import { createClient, type Client } from '../../src/client/client.ts';
import { ServiceError } from '../../src/base/errors.ts';
import { runNode } from '../cli/service-local.ts';
import { CERTIFICATE, CERTIFICATE_KEY } from './certificate.ts';
import { isAtLength } from '../length.ts';

const servers: Server[] = [];

afterEach(async () => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
});

/** @returns its origin. */
async function listen(server: Server): Promise<string> {
  servers.push(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server that says it is ours. */
const serve = (listener: RequestListener): Promise<string> =>
  listen(
    createServer((request, response) => {
      response.setHeader('service-name', 'service-local');
      listener(request, response);
    }),
  );

/** A server whose every answer is this one. */
const answering = (
  status: number,
  body: string | object,
  headers: Record<string, string> = {},
): Promise<string> =>
  serve((_, response) => {
    const isText = typeof body === 'string';
    const type = { 'content-type': isText ? 'text/html' : 'application/json' };
    response.writeHead(status, { ...type, ...headers });
    response.end(isText ? body : JSON.stringify(body));
  });

const health = (client: Client) => client.call<typeof getHealth>('get', '/healthz', {});
const failureOf = (promise: Promise<unknown>): Promise<ServiceError> =>
  promise.then(
    () => expect.fail('it succeeds'),
    (error: unknown) => {
      expect(error).toBeInstanceOf(ServiceError);
      return error as ServiceError;
    },
  );

const ACME = { customer_id: 'acme', name: 'Acme', created_at: '2026-01-02T03:04:05Z' };

describe('a request', () => {
  it('a request has the parameters, query, headers and body of its route', async () => {
    const seen: [IncomingMessage, string][] = [];
    const url = await serve(async (request, response) => {
      seen.push([request, await text(request)]);
      response.end(JSON.stringify(ACME));
    });
    const client = createClient({ url, authorize: () => 'Bearer slt_x' });
    const body = { customer_id: 'acme', name: 'Acmé' };
    const made = await client.call<typeof createCustomer>('post', '/identity/customers', { body });
    expect(made).toEqual(ACME);
    const params = { customer_id: 'a/b?c=%' };
    await client.call<typeof getCustomer>('get', '/identity/customers/{customer_id}', { params });
    const query = { limit: 7, customer_id: 'a&b', cursor: undefined };
    await client.call<typeof listContracts>('get', '/identity/contracts', { query });

    expect(seen.map(([{ method, url: path }]) => `${method} ${path}`)).toEqual([
      'POST /identity/customers',
      'GET /identity/customers/a%2Fb%3Fc%3D%25',
      'GET /identity/contracts?limit=7&customer_id=a%26b',
    ]);
    expect(JSON.parse(seen[0]![1])).toEqual(body);
    expect(seen[0]![0].headers).toMatchObject({
      authorization: 'Bearer slt_x',
      'content-type': 'application/json',
    });
    expect(seen[1]![0].headers).not.toHaveProperty('content-type');
  });

  it('a list is requested until the last page', async () => {
    const paths: unknown[] = [];
    const url = await serve((request, response) => {
      paths.push(request.url);
      const next_cursor = ['b', 'c', null][paths.length - 1];
      response.end(JSON.stringify({ items: [paths.length], next_cursor }));
    });
    const list = createClient({ url }).items<typeof listCustomers>(
      'get',
      '/identity/customers',
      {},
    );
    expect(await Array.fromAsync(list)).toEqual([1, 2, 3]);
    expect(paths).toEqual([
      '/identity/customers?limit=1000',
      '/identity/customers?limit=1000&cursor=b',
      '/identity/customers?limit=1000&cursor=c',
    ]);
  });

  it('a request is signed again with the nonce that the server requires', async () => {
    const seen: string[] = [];
    const url = await serve((request, response) => {
      seen.push(request.headers.authorization!);
      const isSecond = seen.length === 2;
      response.writeHead(isSecond ? 200 : 401, isSecond ? {} : { 'service-nonce': 'n-1' });
      response.end(isSecond ? '{"status":"ok"}' : '{}');
    });
    const client = createClient({
      url,
      authorize: ({ method, url: target }, nonce) => `DeviceProof ${method} ${target} ${nonce}`,
    });
    expect(await health(client)).toEqual({ status: 'ok' });
    expect(seen).toEqual([
      `DeviceProof GET ${url}/healthz undefined`,
      `DeviceProof GET ${url}/healthz n-1`,
    ]);
  });

  it('a request uses the proxy from the environment, except to loopback addresses', async () => {
    const asked: string[] = [];
    const proxy = await serve((request, response) => {
      asked.push(request.url!);
      response.end('{"status":"ok"}');
    });
    const direct = await answering(200, { status: 'ok' });
    vi.stubEnv('http_proxy', proxy);
    vi.stubEnv('no_proxy', 'direct.example');
    await health(createClient({ url: direct }));
    expect(asked).toEqual([]);
    expect(await health(createClient({ url: 'http://licenses.example' }))).toEqual({
      status: 'ok',
    });
    expect(asked).toEqual(['http://licenses.example/healthz']);
    await failureOf(health(createClient({ url: 'http://direct.example' })));
    expect(asked).toHaveLength(1);
  });

  it('a client warns once about plain http to another host', async () => {
    const proxy = await answering(200, { status: 'ok' });
    vi.stubEnv('http_proxy', proxy);
    const warned: string[] = [];
    const warn = (line: string): number => warned.push(line);
    const client = createClient({ url: 'http://licenses.example', warn });
    await health(client);
    await health(client);
    await health(createClient({ url: proxy, warn }));
    expect(warned).toEqual([
      'http://licenses.example uses plain http: others on the network can read what is sent, secrets included',
    ]);
  });

  it.runIf(isAtLength)('the client loads no schema and no server', async () => {
    const client = join(import.meta.dirname, '../../src/client/client.ts');
    const script = `
      import { registerHooks } from 'node:module';
      registerHooks({ resolve(specifier, context, next) {
        const found = next(specifier, context);
        console.log(found.url);
        return found;
      } });
      const { createClient } = await import(${JSON.stringify(client)});
      await createClient({ url: 'http://127.0.0.1:1' }).call('get', '/healthz', {}).catch(() => {});
    `;
    const { stdout } = await runNode(['--input-type=module', '--eval', script]);
    expect(stdout).toContain('node_modules/undici');
    expect(stdout).not.toMatch(/node_modules\/(@hono|hono|zod)/);
  });
});

describe('a failure', () => {
  it('a failure is the error in the response', async () => {
    const problem = {
      code: 'license_revoked',
      detail: 'the installation is revoked',
      reason: 'installation',
      remedy: 'Ask the vendor.',
      errors: [{ code: 'invalid_value', pointer: '/a', detail: 'is wrong', suggestion: 'b' }],
      request_id: 'r-1',
    };
    const url = await answering(403, problem, { 'retry-after': '7' });
    expect(await failureOf(health(createClient({ url })))).toMatchObject({
      code: 'license_revoked',
      message: 'the installation is revoked',
      reason: 'installation',
      remedy: 'Ask the vendor.',
      problems: [{ code: 'invalid_value', pointer: '/a', message: 'is wrong', suggestion: 'b' }],
      retryAfterSeconds: 7,
    });
  });

  it('texts of the server are shortened and printable', async () => {
    const long = `\u001B[2J${'x'.repeat(5000)}\n`;
    const url = await answering(403, {
      code: 'conflict',
      detail: long,
      reason: long,
      remedy: long,
    });
    const { message, reason, remedy } = await failureOf(health(createClient({ url })));
    for (const said of [message, reason, remedy]) expect(said).toBe(`${'x'.repeat(1000)}…`);
  });

  it('a response above the size limit is an error', async () => {
    const url = await answering(200, { status: 'x'.repeat(2000) });
    const client = createClient({ url, largestAnswer: 1000 });
    expect(await failureOf(health(client))).toMatchObject({
      code: 'server_unreachable',
      message: `${url}: the response is too large`,
    });
  });

  it('an internal error names its request_id', async () => {
    const problem = { code: 'failure', detail: 'it failed', request_id: 'r-1' };
    const url = await answering(500, problem, { 'retry-after': 'Wed, 21 Oct 2026 07:28:00 GMT' });
    expect(await failureOf(health(createClient({ url })))).toMatchObject({
      code: 'failure',
      message: 'it failed (request_id r-1)',
      retryAfterSeconds: undefined,
    });
  });

  it('an unknown code of a newer server becomes `failure`', async () => {
    const url = await answering(418, { code: 'teapot', detail: 'short and stout' });
    expect(await failureOf(health(createClient({ url })))).toMatchObject({
      code: 'failure',
      message: 'short and stout',
    });
  });

  it.each([
    ['a page', 200, '<html>hello</html>'],
    ['a page of a proxy', 502, '<html>Bad Gateway</html>'],
    ['nothing', 200, ''],
    ['another JSON', 404, { message: 'not here' }],
    ['another problem', 404, { code: 7, detail: 'x' }],
    ['a problem with something else in it', 400, { code: 'conflict', detail: 'x', errors: 'y' }],
    ['a problem of nothing', 400, { code: 'conflict', detail: 'x', errors: [null] }],
    ['a problem without a place', 400, { code: 'conflict', detail: 'x', errors: [{ code: 'y' }] }],
    ['no object', 404, '"conflict"'],
  ])('is %s that no such server answers', async (_, status, body) => {
    const url = await answering(status, body);
    expect(await failureOf(health(createClient({ url })))).toMatchObject({
      code: 'server_unreachable',
      message: `${url}: the response (status ${status}) is not that of a service-local server`,
      remedy: expect.stringContaining('--url'),
    });
  });

  it.each([
    ['another answer', 200, { hello: 1 }],
    ['another problem', 404, { code: 'not_found', detail: 'there is no such page' }],
  ])('is %s of a server that does not say it is ours', async (_, status, body) => {
    const url = await listen(
      createServer((_request, response) => {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify(body));
      }),
    );
    expect(await failureOf(health(createClient({ url })))).toMatchObject({
      code: 'server_unreachable',
      message: `${url}: the response (status ${status}) is not that of a service-local server`,
    });
  });

  it.each([
    ['no list', { hello: 1 }],
    ['nothing', null],
    ['a list that does not say whether it ends', { items: [] }],
    ['a list that does not end', { items: [1], next_cursor: 'the same' }],
  ])('is %s where a list is asked for', async (_, body) => {
    const url = await answering(200, body ?? 'null');
    const list = createClient({ url }).items<typeof listCustomers>(
      'get',
      '/identity/customers',
      {},
    );
    expect(await failureOf(Array.fromAsync(list))).toMatchObject({
      code: 'server_unreachable',
      message: `${url}: the response is not that of a service-local server`,
    });
  });

  it.each(['', '.', '..'])('the id %j is refused without a request', async (customer_id) => {
    const asked = vi.fn<RequestListener>((_, response) => response.end('{}'));
    const client = createClient({ url: await serve(asked) });
    const params = { customer_id };
    const path = '/identity/customers/{customer_id}';
    expect(await failureOf(client.call<typeof getCustomer>('get', path, { params }))).toMatchObject(
      {
        code: 'not_found',
        message: `no resource has the customer_id "${customer_id}"`,
      },
    );
    expect(asked).not.toHaveBeenCalled();
  });

  it('a redirect is an error, and its target receives no token', async () => {
    const elsewhere = vi.fn<RequestListener>((_, response) => response.end('{}'));
    const location = await serve(elsewhere);
    const url = await answering(302, '', { location });
    expect(await failureOf(health(createClient({ url })))).toMatchObject({
      code: 'server_unreachable',
      message: expect.stringContaining('status 302'),
    });
    expect(elsewhere).not.toHaveBeenCalled();
  });

  it('a refused connection and an unknown host name are reported as such', async () => {
    const url = await answering(200, {});
    servers.pop()!.close();
    expect(await failureOf(health(createClient({ url })))).toMatchObject({
      code: 'server_unreachable',
      message: `${url}: connection refused`,
    });
    const nobody = createClient({ url: 'https://nobody.invalid' });
    expect((await failureOf(health(nobody))).message).toMatch(
      /^https:\/\/nobody\.invalid: (host name not found|the host name could not be)/,
    );
  });

  it('a connection that breaks before or within the response is an error', async () => {
    const before = await serve((request) => request.socket.destroy());
    const within = await serve((request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('{');
      response.flushHeaders();
      setImmediate(() => request.socket.destroy());
    });
    for (const url of [before, within]) {
      expect(await failureOf(health(createClient({ url })))).toMatchObject({
        code: 'server_unreachable',
        message: `${url}: the connection broke`,
      });
    }
  });

  it('a response that does not arrive or does not end is an error', async () => {
    const timeout = vi.spyOn(AbortSignal, 'timeout');
    const silent = await serve(() => {});
    const endless = await serve((_, response) => response.write('{'));
    for (const url of [silent, endless]) {
      const controller = new AbortController();
      timeout.mockReturnValueOnce(controller.signal);
      const answer = failureOf(health(createClient({ url })));
      await vi.waitFor(() => expect(timeout).toHaveBeenLastCalledWith(40_000));
      controller.abort(new DOMException('late', 'TimeoutError'));
      expect(await answer).toMatchObject({
        code: 'server_unreachable',
        message: `${url}: no answer in time`,
      });
    }
  });
});

describe('a connection that is never there', () => {
  /** Takes connections and says nothing. */
  const silent = async (): Promise<{
    readonly port: number;
    readonly reached: Promise<unknown>;
  }> => {
    const server = createSocketServer((socket) => void socket.resume().on('error', () => {}));
    server.on('connection', (socket) => ends.push(() => socket.destroy()));
    const reached = once(server, 'connection');
    ends.push(() => server.close());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    return { port: (server.address() as AddressInfo).port, reached };
  };
  const ends: (() => unknown)[] = [];
  afterEach(() => {
    for (const end of ends.splice(0)) end();
  });

  const cases: [string, () => Promise<{ url: string; reached: Promise<unknown> }>][] = [
    [
      'as nothing comes back from there',
      () => Promise.resolve({ url: 'http://10.255.255.1', reached: Promise.resolve() }),
    ],
    [
      'as it does not speak TLS, nor anything',
      async () => {
        const { port, reached } = await silent();
        return { url: `https://127.0.0.1:${port}`, reached };
      },
    ],
    [
      'as a proxy does not speak',
      async () => {
        const { port, reached } = await silent();
        vi.stubEnv('https_proxy', `http://127.0.0.1:${port}`);
        return { url: 'https://licenses.example', reached };
      },
    ],
  ];
  it.each(cases)(
    'a connection that is never established ends at the time limit, %s',
    async (_, open) => {
      const { url, reached } = await open();
      const client = createClient({ url, timeoutMs: 300 });
      const begun = performance.now();
      const failure = failureOf(health(client));
      await reached;
      expect(await failure).toMatchObject({ code: 'server_unreachable' });
      // Undici looks at its own time-outs twice a second.
      expect(performance.now() - begun).toBeLessThan(5000);
    },
  );

  it.each(cases)(
    'a connection that is never established ends when aborted, %s',
    async (_, open) => {
      const { url, reached } = await open();
      const stop = new AbortController();
      const failure = failureOf(health(createClient({ url, signal: stop.signal })));
      await reached;
      const begun = performance.now();
      stop.abort();
      expect(await failure).toMatchObject({ code: 'interrupted' });
      expect(performance.now() - begun).toBeLessThan(1000);
    },
  );
});

describe('a server with a certificate of its own', () => {
  it.runIf(isAtLength)(
    "a certificate authority of one's own is trusted only with NODE_EXTRA_CA_CERTS",
    async () => {
      const server = createTlsServer({ cert: CERTIFICATE, key: CERTIFICATE_KEY }, (_, response) => {
        response.setHeader('service-name', 'service-local');
        response.end('{"status":"ok"}');
      });
      const url = (await listen(server)).replace('http:', 'https:');
      expect(await failureOf(health(createClient({ url })))).toMatchObject({
        code: 'server_unreachable',
        message: `${url}: this machine does not trust its certificate`,
        remedy: expect.stringContaining('NODE_EXTRA_CA_CERTS'),
      });

      const directory = await mkdtemp(join(tmpdir(), 'client-'));
      const file = join(directory, 'ca.pem');
      await writeFile(file, CERTIFICATE);
      const client = join(import.meta.dirname, '../../src/client/client.ts');
      const script = `
      const { createClient } = await import(${JSON.stringify(client)});
      console.log(await createClient({ url: '${url}' }).call('get', '/healthz', {}));
    `;
      const env = { NODE_EXTRA_CA_CERTS: file };
      const result = await runNode(['--input-type=module', '--eval', script], { env });
      expect(result).toEqual({ code: 0, stdout: "{ status: 'ok' }\n", stderr: '' });
      await rm(directory, { recursive: true });
    },
  );
});

it('an https address of a plain http server is reported as such', async () => {
  const server = createServer((_request, response) => response.end('{}'));
  const url = (await listen(server)).replace('http:', 'https:');
  expect(await failureOf(health(createClient({ url })))).toMatchObject({
    code: 'server_unreachable',
    message: `${url}: the server does not use TLS`,
  });
});

describe('a stream', () => {
  const query = { after_seq: 3 };
  const params = { bot_ref: 'sma' };
  const streamOf = (url: string) =>
    createClient({ url, authorize: () => 'Bearer slt_x' }).stream<typeof streamBotEvents>(
      '/bots/{bot_ref}/state/events/stream',
      { params, query, headers: { 'last-event-id': '4' } },
    );

  it('a stream is parsed into events for any chunks', async () => {
    const seen: IncomingMessage[] = [];
    const sent =
      ': hello\n\nid: 5\r\ndata: é\rdata\rdata:b\n\nevent: x\n\ndata: 2\n\n\ndata: cut off\n';
    const url = await serve(async (request, response) => {
      seen.push(request);
      response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' });
      for (const byte of Buffer.from(sent)) {
        response.write(Buffer.of(byte));
        await new Promise(setImmediate);
      }
      response.end();
    });
    expect(await Array.fromAsync(streamOf(url))).toEqual([
      { id: '5', event: 'message', data: 'é\n\nb' },
      { id: '5', event: 'message', data: '2' },
    ]);
    expect(seen[0]!.url).toBe('/bots/sma/state/events/stream?after_seq=3');
    expect(seen[0]!.headers).toMatchObject({
      accept: 'text/event-stream',
      authorization: 'Bearer slt_x',
      'last-event-id': '4',
    });
  });

  it('a refused stream rejects with the error in the response', async () => {
    const refused = await answering(404, { code: 'not_found', detail: 'there is no bot "sma"' });
    expect(await failureOf(Array.fromAsync(streamOf(refused)))).toMatchObject({
      code: 'not_found',
      message: 'there is no bot "sma"',
    });
    const other = await listen(
      createServer((_request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).end('data: 1\n\n');
      }),
    );
    expect(await failureOf(Array.fromAsync(streamOf(other)))).toMatchObject({
      code: 'server_unreachable',
      message: `${other}: the response (status 200) is not that of a service-local server`,
    });
    const plain = await answering(200, {});
    expect(await failureOf(Array.fromAsync(streamOf(plain)))).toMatchObject({
      code: 'server_unreachable',
    });
  });

  it('a broken stream rejects after the events that arrived', async () => {
    const url = await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.write('id: 1\ndata: 1\n\n', () => response.destroy());
    });
    const came: string[] = [];
    const reading = (async () => {
      for await (const { id } of streamOf(url)) came.push(id);
    })();
    expect(await failureOf(reading)).toMatchObject({
      code: 'server_unreachable',
      message: `${url}: the connection broke`,
    });
    expect(came).toEqual(['1']);
  });
});
