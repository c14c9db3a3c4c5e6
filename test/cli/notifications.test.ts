import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import type { Delivery } from '../../src/api/notifications.ts';
import type { CheckResult } from '../../src/doctor/run-checks.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import {
  isSigned,
  receiveHttp,
  WEBHOOK_SECRET,
  type HttpReceiver,
} from '../fleet/notifications/receivers.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { addTrader, tradingDocument } from '../server/trader.ts';
import { newDatabase, type TestDatabase } from '../storage/databases.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';

/** Two servers on one PostgreSQL database. */
let directory: string;
let database: TestDatabase;
let storage: Storage;
let servers: readonly ServerHere[];
let receiver: HttpReceiver;
let receiverStatus = 204;
let authorization: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'service-local-notifications-'));
  database = await newDatabase('postgres');
  storage = await openStorage(database.location);
  authorization = await addTrader(storage, Date.now(), 'admin');
  receiver = await receiveHttp((response) => void response.writeHead(receiverStatus).end());
  const file = join(directory, 'notifications.yaml');
  const channel = `{ type: webhook, url: '${receiver.url}', secret_env: OPS_SECRET, allow_private_address: true }`;
  const refused = `{ type: webhook, url: '${receiver.url}', secret_env: OPS_SECRET }`;
  await writeFile(file, `channels:\n  operations: ${channel}\n  refused: ${refused}\n`);
  const variables = { SERVICE_LOCAL_NOTIFICATIONS_FILE: file, OPS_SECRET: WEBHOOK_SECRET };
  servers = await Promise.all([0, 1].map(() => serveHere(database, variables)));
  await fetch(`${servers[0]!.url}/bots`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ document: tradingDocument('days', 'SPX', '1d', 1) }),
  });
});
afterAll(async () => {
  await Promise.all(servers.map(({ stop }) => stop()));
  await receiver.close();
  await storage.close();
  await database.remove();
  await rm(directory, { recursive: true });
});

function run(words: string, at = 0): Promise<Result> {
  const token = authorization.slice('Bearer '.length);
  const env = { ...servers[at]!.env, SERVICE_LOCAL_TOKEN: token };
  return inProcess(words.split(' '), { env });
}

async function deliveries(): Promise<readonly Delivery[]> {
  const { stdout } = await run('notifications deliveries --json');
  return (JSON.parse(stdout) as { readonly deliveries: readonly Delivery[] }).deliveries;
}

test('two servers on one database send one webhook of a halt, and no secret reaches their logs', async () => {
  const added = await run('notifications add halts --condition halted --channel operations');
  expect(added).toMatchObject({ code: 0, stderr: '' });
  expect(await run('bots halt days --reason drill', 1)).toMatchObject({ code: 0 });
  await vi.waitFor(
    async () => expect(await deliveries()).toMatchObject([{ status: 'sent', attempts: 1 }]),
    { timeout: 10_000, interval: 50 },
  );
  await Promise.all(servers.map(({ stop }) => stop()));
  const file = join(directory, 'notifications.yaml');
  const variables = { SERVICE_LOCAL_NOTIFICATIONS_FILE: file, OPS_SECRET: WEBHOOK_SECRET };
  const logs = servers.map(({ log }) => log());
  servers = [await serveHere(database, variables)];
  expect(receiver.requests).toHaveLength(1);
  expect(isSigned(receiver.requests[0]!, WEBHOOK_SECRET)).toBe(true);
  for (const log of logs) expect(log).not.toContain(WEBHOOK_SECRET.slice(6));
});

test('the commands list, test and remove', async () => {
  const { stdout } = await run('notifications list');
  expect(stdout).toMatch(/halts +halted +all +operations/);
  expect(stdout).toContain('channel operations (webhook): ready\n');
  expect(await run('notifications test operations')).toMatchObject({
    code: 0,
    stdout: 'Channel operations has accepted the test.\n',
  });
  receiverStatus = 500;
  expect(await run('notifications test operations')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('→ The receiver refused the test: look there') as string,
  });
  expect(
    (await run('notifications add deep --condition drawdown --channel operations')).stderr,
  ).toMatch(/^error invalid_request: --amount is missing\n/);
  const isPrivate = 'the address of 127.0.0.1 is private';
  expect(stdout).toContain(`channel refused (webhook): ${isPrivate}`);
  const refused = await run('notifications test refused --json');
  expect(refused.code).toBe(1);
  expect(JSON.parse(refused.stdout)).toMatchObject({
    error: { code: 'failure', message: expect.stringContaining(isPrivate) as string },
  });
  expect((await run('notifications deliveries --status failed')).stdout).toContain('test');
  const { stdout: found } = await run('doctor --server --json');
  const { checks } = JSON.parse(found) as { readonly checks: readonly CheckResult[] };
  expect(checks.find(({ code }) => code === 'notifications')).toMatchObject({
    status: 'warn',
    // The failed test of the channel does not count.
    summary: expect.stringMatching(/^refused: the address of .+ is private; [^;]+$/) as string,
    evidence: { failed: 0 },
  });
  expect(await run('notifications remove halts')).toMatchObject({ code: 0 });
  expect(await run('notifications add warned --condition halted --channel refused')).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(
      /^warning: the channel refused cannot send: the address of .+ is private;/,
    ) as string,
  });
  await storage.write(
    async (tx) =>
      void (await tx.updateTable('notification_rules').set({ channel: 'gone' }).execute()),
  );
  expect((await run('notifications list')).stdout).toContain(
    'channel gone: not in the notifications_file of this server, but used by rules: warned\n',
  );
  const listed = await run('notifications list --json');
  expect(JSON.parse(listed.stdout)).toMatchObject({
    channels: [
      { name: 'operations', fault: null },
      { name: 'refused', fault: expect.stringContaining(isPrivate) as string },
      {
        name: 'gone',
        type: null,
        fault: 'not in the notifications_file of this server, but used by rules: warned',
      },
    ],
  });
  expect(await run('notifications remove warned')).toMatchObject({ code: 0 });
  expect((await run('notifications list')).stdout).toMatch(/^No entries\.\n/);
});

test('a secret in the file of channels is refused without showing it', async () => {
  const file = join(directory, 'secret.yaml');
  const channel = `{ type: webhook, url: 'https://hooks.example', secret: ${WEBHOOK_SECRET} }`;
  await writeFile(file, `channels:\n  operations: ${channel}\n`);
  const started = serveHere(database, { SERVICE_LOCAL_NOTIFICATIONS_FILE: file });
  await expect(started).rejects.toMatchObject({
    code: 'invalid_setting',
    problems: expect.arrayContaining([
      expect.objectContaining({
        message:
          'channels.operations: unknown field "secret"; put the secret into an environment variable, and the name of the variable here',
      }),
    ]) as unknown,
  });
  await expect(started).rejects.not.toMatchObject({
    message: expect.stringContaining(WEBHOOK_SECRET) as string,
  });
});
