import { expect, it } from 'vitest';
import { retry } from '../../src/base/backoff.ts';

const SLOW = { shortestMs: 60_000, longestMs: 60_000 };

it('attempts again at once when the wait is ended early, and reports its error', async () => {
  const waking = new AbortController();
  let attempts = 0;
  const attempt = async (): Promise<never> => {
    attempts += 1;
    throw new Error(`attempt ${attempts}`);
  };
  const shouldRetry = (): boolean => !waking.signal.aborted;
  const retried = retry(attempt, { ...SLOW, shouldRetry, wake: waking.signal });
  setTimeout(() => waking.abort(), 10);
  await expect(retried).rejects.toThrow('attempt 2');
});

it('stops without another attempt when it is aborted during a wait', async () => {
  const stopping = new AbortController();
  let attempts = 0;
  const attempt = async (): Promise<never> => {
    attempts += 1;
    throw new Error('no answer');
  };
  const retried = retry(attempt, { ...SLOW, shouldRetry: () => true, signal: stopping.signal });
  setTimeout(() => stopping.abort(), 10);
  await expect(retried).rejects.toMatchObject({ name: 'AbortError' });
  expect(attempts).toBe(1);
});
