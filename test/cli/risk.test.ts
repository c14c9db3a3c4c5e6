import { afterAll, beforeAll, expect, test } from 'vitest';
import { newWorld, type World } from '../identity/people.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { inProcess } from './in-process.ts';

let world: World;
let server: ServerHere;
let tokens: Record<'admin' | 'trade', string>;

beforeAll(async () => {
  world = await newWorld('sqlite');
  world.now = Date.now();
  const person = await world.newPerson();
  tokens = { admin: await person.token('admin', 'read'), trade: await person.token('trade') };
  server = await serveHere(world.database);
});
afterAll(async () => {
  await server.stop();
  await world.close();
});

const risk = (words: string, who: keyof typeof tokens = 'admin') =>
  inProcess(['risk', 'thresholds', ...words.split(' ')], {
    env: { ...server.env, SERVICE_LOCAL_TOKEN: tokens[who] },
  });

test('an administrator sets, lists and removes thresholds', async () => {
  const desk = '--level desk --subject fx --currency USD --rationale agreed';
  expect(await risk(`set ${desk} --max-order-value 5`, 'trade')).toMatchObject({ code: 4 });
  const set = await risk(`set ${desk} --max-order-value 5000 --max-daily-loss 100`);
  expect(set).toMatchObject({ code: 0, stderr: '' });
  expect(set.stdout).toContain('max_order_value 5000, max_daily_loss 100');
  // A threshold for a desk without a name would block all bots without a desk.
  const unnamed = await risk('set --level desk --currency USD --rationale x --max-order-value 5');
  expect(unnamed).toMatchObject({ code: 2, stderr: expect.stringContaining('Name the desk') });
  const wrong = await risk(`set ${desk} --max-order-qty 5`);
  expect(wrong.stderr).toContain('max_order_qty applies only to the level instrument');
  expect(await risk(`remove ${desk}`)).toMatchObject({
    code: 0,
    stdout: 'Removed the threshold of desk fx in USD.\n',
  });
  expect((await risk('list')).stdout).toBe('No entries.\n');
  const { stdout } = await risk('list --history --json');
  expect((JSON.parse(stdout) as { thresholds: unknown[] }).thresholds).toMatchObject([
    { version: 1, limits: { max_order_value: 5000, max_daily_loss: 100 }, rationale: 'agreed' },
    { version: 2, limits: null, sessions: { paper: 0, production: 0 } },
  ]);
});
