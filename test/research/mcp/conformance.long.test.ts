import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request, type Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { serve, type ServerType } from '@hono/node-server';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newTestApp, type TestApp } from '../../server/in-process.ts';

const SUITE = join(
  dirname(createRequire(import.meta.url).resolve('@modelcontextprotocol/conformance/package.json')),
  'dist/index.js',
);

/**
 * Scenarios for features that the server does not offer: resources, prompts, completion, logging,
 * sampling and elicitation, and tools that only a reference server has.
 */
const NOT_OFFERED = [
  'logging-set-level',
  'completion-complete',
  'tools-call-simple-text',
  'tools-call-image',
  'tools-call-audio',
  'tools-call-embedded-resource',
  'tools-call-mixed-content',
  'tools-call-with-logging',
  'tools-call-error',
  'tools-call-with-progress',
  'tools-call-sampling',
  'tools-call-elicitation',
  'json-schema-2020-12',
  'elicitation-sep1034-defaults',
  'elicitation-sep1330-enums',
  'resources-list',
  'resources-read-text',
  'resources-read-binary',
  'resources-templates-read',
  'resources-subscribe',
  'resources-unsubscribe',
  'prompts-list',
  'prompts-get-simple',
  'prompts-get-with-args',
  'prompts-get-embedded-resource',
  'prompts-get-with-image',
];

let server: TestApp;
let listening: ServerType;
let proxy: Server;
let url: string;
let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'service-local-conformance-'));
  server = await newTestApp();
  const authorization = await server.bearer('read', 'write');
  const { promise, resolve } = Promise.withResolvers<number>();
  listening = serve({ fetch: server.app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) =>
    resolve(port),
  );
  const port = await promise;
  // The suite sends no token.
  proxy = createServer((asked, answer) => {
    const { method, url: path, headers } = asked;
    const options = {
      port,
      host: '127.0.0.1',
      method,
      path,
      headers: { ...headers, authorization },
    };
    const passed = request(options, (found) => {
      answer.writeHead(found.statusCode!, found.headers);
      found.pipe(answer);
    });
    passed.on('error', () => answer.destroy());
    asked.pipe(passed);
  });
  await new Promise<void>((listen) => proxy.listen(0, '127.0.0.1', listen));
  const { port: own } = proxy.address() as AddressInfo;
  url = `http://127.0.0.1:${own}/mcp`;
  const origins = [`http://127.0.0.1:${own}`, `http://localhost:${own}`];
  Object.assign(server.services, { origins });
});
afterAll(async () => {
  proxy.close();
  listening.close();
  await server.close();
  await rm(directory, { recursive: true });
});

test('the server passes the public conformance suite of MCP for the features that it offers', async () => {
  const baseline = join(directory, 'baseline.yaml');
  await writeFile(baseline, `server:\n${NOT_OFFERED.map((name) => `  - ${name}\n`).join('')}`);
  const args = [SUITE, 'server', '--url', url, '--expected-failures', baseline];
  // The suite fails if a scenario fails that is not listed, and if a listed one passes.
  const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: directory });
  for (const name of ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection']) {
    expect(stdout).toContain(name);
  }
});
