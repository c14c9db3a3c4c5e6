import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { exampleDocument } from '../../src/api/bots.ts';
import type { BotTemplate, BotValidation } from '../../src/api/bot-specs.ts';
import { createApp } from '../../src/server/app.ts';
import { fillCatalogue } from '../fleet/tasks/market.ts';
import { newTestApp, type TestApp } from './in-process.ts';
import { isAtLength } from '../length.ts';

let server: TestApp;
let authorization: string;

beforeAll(async () => {
  server = await newTestApp();
  authorization = await server.bearer('read', 'write');
});
afterAll(() => server.close());

async function validate(body: object, query = ''): Promise<BotValidation> {
  const headers = { authorization };
  const answer = await server.send('POST', `/bots/validate${query}`, { headers, body });
  expect(answer.status).toBe(200);
  return answer.body as BotValidation;
}

const text = stringify(exampleDocument('sma-10', 10));

describe('POST /bots/validate', () => {
  test('returns every problem with its line and column in the text', async () => {
    const yaml = text.replace('fast: 10', 'fats: 10').replace('timeframe: 1d', 'timeframe: 2d');
    const lines = yaml.split('\n');
    const { valid, problems, document } = await validate({ yaml });
    expect([valid, document]).toEqual([false, null]);
    expect(problems.map(({ line, column }) => lines[line! - 1]!.slice(column! - 1))).toEqual([
      '2d',
      'fats: 10',
    ]);
    expect(problems[1]).toMatchObject({ code: 'unknown_param', suggestion: 'fast' });
    expect(problems[1]!.detail).not.toContain('line');
  });

  test('reports faults of the syntax', async () => {
    const { problems } = await validate({ yaml: 'apiVersion: bots/v1\nspec: {' });
    expect(problems).toMatchObject([{ code: 'yaml_syntax', line: 2 }]);
  });

  test('gives no lines for data, and saves nothing', async () => {
    const document = exampleDocument('sma-10', 10);
    expect(await validate({ document })).toMatchObject({ valid: true, document, patch: null });
    const { problems } = await validate({ document: { ...document, kind: 'Bat' } });
    expect(problems[0]).toMatchObject({ pointer: '/kind' });
    expect(problems[0]).not.toHaveProperty('line');
    const { body } = await server.send('GET', '/bots', { headers: { authorization } });
    expect(body).toMatchObject({ items: [] });
  });

  test('compares a valid spec with the current version of a bot', async () => {
    const headers = { authorization };
    await server.send('POST', '/bots', { headers, body: { yaml: text } });
    const yaml = text.replace('fast: 10', 'fast: 12').replace(/ +slow: 30\n/, '');
    expect(await validate({ yaml }, '?bot=sma-10')).toMatchObject({
      changes: [
        { pointer: '/spec/strategy/params/fast', from: 10, to: 12 },
        { pointer: '/spec/strategy/params/slow', kind: 'removed' },
      ],
      patch: { spec: { strategy: { params: { fast: 12, slow: null } } } },
    });
    const unknown = { headers, body: { yaml } };
    expect(await server.send('POST', '/bots/validate?bot=none', unknown)).toMatchObject({
      status: 404,
    });
  });
});

test('the schema describes the parameters of the built-in strategies', async () => {
  const { body } = await server.send('GET', '/bots/schema', { headers: { authorization } });
  expect(body).toMatchObject({ properties: { apiVersion: { const: 'bots/v1' } } });
  expect(JSON.stringify(body)).toContain('"const":"sma_crossover"');
});

test(`each template ${isAtLength ? '' : 'without code '}is a valid spec`, async () => {
  await fillCatalogue(server.services.tasks.catalogueDir, 1);
  const tasks = { ...server.services.tasks, customCode: { memoryMb: 256, timeoutMs: 5000 } };
  const app = createApp({ ...server.services, tasks });
  const headers = { authorization, 'content-type': 'application/json' };
  const answer = await app.request('/bots/templates', { headers });
  const { items } = (await answer.json()) as { readonly items: readonly BotTemplate[] };
  expect(items.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['sma_crossover', 'pairs_reversion', 'module']),
  );
  // Validating code starts a process, so that `npm test` skips these templates.
  const tried = items.filter(({ files }) => isAtLength || files === undefined);
  for (const { name, document, files } of tried) {
    const body = JSON.stringify({ yaml: stringify(document), files });
    const checked = await app.request('/bots/validate', { method: 'POST', headers, body });
    expect([name, await checked.json()]).toMatchObject([name, { problems: [] }]);
  }
});

test.runIf(isAtLength)('a fault in code is reported at the line of its module', async () => {
  const tasks = { ...server.services.tasks, customCode: { memoryMb: 256, timeoutMs: 5000 } };
  const app = createApp({ ...server.services, tasks });
  const headers = { authorization, 'content-type': 'application/json' };
  const yaml = text.replace('name: sma_crossover', 'module: ./own.ts');
  const body = JSON.stringify({ yaml, files: { 'own.ts': 'export default 1;' } });
  const answer = await app.request('/bots/validate', { method: 'POST', headers, body });
  const { problems } = (await answer.json()) as BotValidation;
  expect(problems).toMatchObject([{ pointer: '/spec/strategy/module' }]);
  expect(yaml.split('\n')[problems[0]!.line! - 1]).toContain('module: ./own.ts');
});
