import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { newTestApp, type TestApp } from './in-process.ts';

let test: TestApp;
beforeAll(async () => {
  test = await newTestApp();
});
afterAll(() => test.close());

describe('the app', () => {
  it('answers', async () => {
    expect(await test.send('GET', '/healthz')).toMatchObject({
      status: 200,
      body: { status: 'ok' },
    });
  });
});
