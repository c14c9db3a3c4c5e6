import { rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { recordSession, startOf } from '../fleet/archive/recorded.ts';
import { tradingDocument } from '../fleet/parity/play.ts';
import { newTestApp, type TestApp } from '../server/in-process.ts';
import { listen, type Listening } from '../server/listening.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';
import { isAtLength } from '../length.ts';

let server: TestApp;
let listening: Listening;
let env: Record<string, string>;
let authorization: string;
let home: string;

beforeAll(async () => {
  server = await newTestApp();
  listening = await listen(server.app);
  authorization = await server.bearer('read', 'write');
  home = dirname(server.services.tasks.catalogueDir);
  env = {
    SERVICE_LOCAL_HOME: home,
    SERVICE_LOCAL_SERVER_URL: listening.url,
    SERVICE_LOCAL_TOKEN: authorization.replace('Bearer ', ''),
  };
  const document = tradingDocument('sma', 10);
  const bot = await server.send('POST', '/bots', {
    headers: { authorization },
    body: { document },
  });
  const { storage } = server.services.identity;
  const { id } = bot.body as { readonly id: string };
  for (const month of ['2026-02', '2026-03']) {
    await recordSession(storage, id, { run_id: month, at: startOf(month), bars: 40 });
  }
});

afterAll(async () => {
  listening.close();
  await server.close();
});

const cli = (...words: string[]): Promise<Result> => inProcess(words, { env });

test.runIf(isAtLength)('archived events are named by reads, verified, and restored', async () => {
  const { stdout } = await cli('events', 'archive', 'sma', '--before', '2026-03', '--json');
  const { directory, files } = JSON.parse(stdout) as {
    readonly directory: string;
    readonly files: readonly { readonly month: string; readonly last_seq: number; file: string }[];
  };
  expect(directory).toBe(join(home, 'event-archive'));
  expect(files.map(({ month }) => month)).toEqual(['2026-01', '2026-02']);
  const { last_seq, file } = files[1]!;

  for (const read of [
    ['bots', 'events', 'sma', '--after-seq', '0'],
    ['bots', 'snapshot', 'sma', '--at-seq', '2'],
    ['bots', 'replay', 'sma', '--until-seq', '2'],
  ]) {
    const failed = await cli(...read, '--json');
    expect({ read, code: failed.code }).toEqual({ read, code: 1 });
    expect(failed.stdout + failed.stderr).toMatch(
      /"archived"[^]*of bot sma are[^]*2026-01[^]*events restore sma --month 2026-01/,
    );
  }
  const path = '/bots/sma/state/events';
  for (const one of [`${path}?after_seq=${last_seq - 1}`, `${path}/stream?after_seq=0`]) {
    const answer = await server.send('GET', one, { headers: { authorization } });
    expect(answer).toMatchObject({ status: 410, body: { code: 'archived' } });
  }
  const kept = await server.send('GET', `${path}?after_seq=${last_seq}&limit=1`, {
    headers: { authorization },
  });
  expect(kept).toMatchObject({ status: 200, body: { items: [{ seq: last_seq + 1 }] } });
  expect((await cli('bots', 'events', 'sma', '--kind', 'run.queued')).stderr).toContain(
    `1 to ${last_seq} are archived`,
  );
  const again = await cli('events', 'archive', '--before', '2026-03');
  expect(again.stdout).toContain('No event from before 2026-03 is left to archive.');
  expect((await cli('bots', 'replay', 'sma')).stdout).toContain(`1 to ${last_seq} are archived`);

  expect(await cli('events', 'verify')).toMatchObject({ code: 0 });
  expect(await cli('events', 'restore', 'sma', '--month', '2026-02')).toMatchObject({ code: 0 });
  expect(await cli('bots', 'events', 'sma', '--run', '2026-02')).toMatchObject({ code: 0 });
  expect(await cli('events', 'archive', '--before', '2026-03')).toMatchObject({ code: 0 });
  const backup = join(home, 'backup.sqlite');
  expect((await cli('server', 'backup', '--out', backup)).stdout).toContain('2 files of archived');
  await rm(join(directory, file));
  const faulty = await cli('events', 'verify', 'sma');
  expect(faulty).toMatchObject({ code: 1, stdout: expect.stringContaining('file_missing') });
  const empty = ['--event-archive-dir', join(home, 'empty'), '--json'];
  expect(await cli('events', 'archive', '--before', '2026-04', ...empty)).toMatchObject({
    code: 3,
    stdout: expect.stringMatching(/"file_not_found"[^]*lacks 2 files of events that are archived/),
  });
  const copy = join(home, 'copy');
  const restored = await inProcess(
    ['server', 'restore', backup, '--event-archive-dir', directory],
    {
      env: { ...env, SERVICE_LOCAL_HOME: copy },
    },
  );
  expect(restored.stdout).toContain(`1 file of archived events, such as ${file}, is not in`);
});

test('no event is archived in a pod without a volume for the archive', async () => {
  const KUBERNETES_SERVICE_HOST = '10.0.0.1';
  const refused = await inProcess(['events', 'archive', '--before', '2026-04'], {
    env: { ...env, KUBERNETES_SERVICE_HOST },
  });
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain('event-archive are not durable');
  const { directory } = JSON.parse((await cli('events', 'verify', '--json')).stdout) as {
    readonly directory: string;
  };
  expect(refused.stderr).toContain(directory);
});
