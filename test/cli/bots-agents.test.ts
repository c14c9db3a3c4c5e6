import { afterAll, beforeAll, expect, test } from 'vitest';
import { researchDocument } from '../research/talk.ts';
import { newTestApp, type TestApp } from '../server/in-process.ts';
import { listen, type Listening } from '../server/listening.ts';
import { inProcess } from './in-process.ts';

let server: TestApp;
let listening: Listening;
let env: Record<string, string>;

beforeAll(async () => {
  server = await newTestApp();
  listening = await listen(server.app);
  const authorization = await server.bearer('read', 'write');
  const SERVICE_LOCAL_TOKEN = authorization.replace('Bearer ', '');
  env = { SERVICE_LOCAL_SERVER_URL: listening.url, SERVICE_LOCAL_TOKEN };
  const schedule = { every: 'day at 06:30', prompt: 'What can I ask?' };
  const agents = [{ role: 'night watch', schedule }, { role: 'critic' }];
  const document = researchDocument('talk', { agents });
  await server.send('POST', '/bots', { headers: { authorization }, body: { document } });
});

afterAll(async () => {
  listening.close();
  await server.close();
});

const agents = (...words: string[]) => inProcess(['bots', 'agents', ...words], { env });

test('starts, lists, runs and stops agents', async () => {
  const { stdout: begun } = await agents('start', 'talk', 'night watch');
  expect(begun).toMatch(/night watch {2,}day at 06:30 {2,}on .* 2026-01-02T06:30:00Z/);
  const asked = await agents('run', 'talk', 'night watch');
  expect(asked).toMatchObject({ code: 0, stderr: '' });
  expect(asked.stdout).toContain('language model');
  const { stdout } = await agents('list', 'talk', '--json');
  expect(JSON.parse(stdout)).toMatchObject({
    agents: [
      { role: 'night watch', is_on: true, last_report: { cause: 'person', status: 'done' } },
      { role: 'critic', is_on: false, schedule: null, last_report: null },
    ],
  });
  expect((await agents('stop', 'talk', 'night watch')).stdout).toContain('off: stopped by ');
  expect(await agents('start', 'talk', 'critic')).toMatchObject({
    code: 6,
    stderr: expect.stringContaining('the agent critic has no schedule') as string,
  });
});
