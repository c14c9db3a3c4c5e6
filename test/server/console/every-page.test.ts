import { afterAll, beforeAll, expect, test } from 'vitest';
import { newTestApp, type TestApp } from '../in-process.ts';
import { pathsOf } from './every-page.ts';

let server: TestApp;
beforeAll(async () => {
  server = await newTestApp();
});
afterAll(() => server.close());

test('every page of the console is among those that are checked in a browser', () => {
  const id = 'none';
  const filled = { backtests: [id, id], others: [], paper: id, chat: id, passkey_id: id } as const;
  const routes = server.app.routes.flatMap(({ method, path }) =>
    method === 'GET' && /^\/(console|identity\/license)(\/(?!assets\/)|$)/.test(path) ? [path] : [],
  );
  expect([...new Set(routes)].toSorted()).toEqual(Object.keys(pathsOf(filled)).toSorted());
});
