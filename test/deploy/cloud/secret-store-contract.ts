import { hash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ServiceError } from '../../../src/base/errors.ts';
import type { SecretStore } from '../../../src/deploy/cloud/secret-store.ts';

/** One store, and what can go wrong with it. */
export interface StoreUnderTest {
  readonly store: SecretStore;
  /** Of a store that keeps it. */
  readonly keepsPrevious: boolean;
  /** The next write takes effect, and its answer is lost. */
  readonly loseAnswer?: () => void;
  /** The next request is told to come again. */
  readonly throttle?: () => void;
  /** Nobody may read from now on; true gives it back. */
  readonly denyReading?: (isDenied: boolean) => void;
  readonly denyWriting?: (isDenied: boolean) => void;
  close(): Promise<void>;
}

const CANARY = 'canary-secret-value';

/** What every secret store must do. */
export function secretStoreContract(kind: string, open: () => Promise<StoreUnderTest>): void {
  describe(`a secret store: ${kind}`, () => {
    let opened: StoreUnderTest;
    beforeAll(async () => {
      opened = await open();
    });
    afterAll(async () => {
      opened.store.close();
      await opened.close();
    });
    const names = (): readonly [string, string] => {
      const prefix = `service/customer/acme/${randomUUID()}/license`;
      return [`${prefix}/public_key`, `${prefix}/lease`];
    };
    const put = (name: string, value: string): Promise<string> =>
      opened.store.put(name, value, hash('sha256', value));

    test('keeps what was put last, each secret by itself', async () => {
      const { store, keepsPrevious } = opened;
      const [keys, lease] = names();
      expect(await store.current(lease)).toBeUndefined();
      const before = Date.now();
      await put(keys, `{"keys":"${CANARY}"}`);
      const first = await put(lease, 'first');
      expect(await store.current(lease)).toMatchObject({ value: 'first', version_id: first });
      const second = await put(lease, 'second\nof "two" – ü');
      expect(second).not.toBe(first);
      const current = await store.current(lease);
      expect(current).toMatchObject({ value: 'second\nof "two" – ü', version_id: second });
      // What a task holds is told by it: never too early, but for what a file system rounds off.
      expect(current!.created_at).toBeGreaterThanOrEqual(before - 20);
      expect(await store.current(keys)).toMatchObject({ value: `{"keys":"${CANARY}"}` });
      expect((await store.previous(lease))?.value).toBe(keepsPrevious ? 'first' : undefined);
    });

    test('does nothing when it is told the same again, and makes an old value current', async () => {
      const { store } = opened;
      const [, lease] = names();
      const first = await put(lease, 'one');
      const { created_at } = (await store.current(lease))!;
      expect(await put(lease, 'one')).toBe(first);
      expect(await store.current(lease)).toEqual({ value: 'one', version_id: first, created_at });
      await put(lease, 'two');
      await put(lease, 'three');
      const fourth = await put(lease, 'one');
      expect(await store.current(lease)).toMatchObject({ value: 'one', version_id: fourth });
    });

    test('takes effect once when its answer is lost or it is told to come again', async () => {
      const { store, loseAnswer, throttle } = opened;
      const [, lease] = names();
      loseAnswer?.();
      const first = await put(lease, 'one');
      throttle?.();
      expect(await put(lease, 'one')).toBe(first);
      loseAnswer?.();
      const second = await put(lease, 'two');
      expect(await store.current(lease)).toMatchObject({ value: 'two', version_id: second });
    });

    test('writes without a right to read, and says who is refused without the value', async () => {
      const { store, denyReading, denyWriting } = opened;
      const [, lease] = names();
      denyReading?.(true);
      await put(lease, CANARY);
      const isRefusing = denyReading !== undefined;
      const read = await told(store.current(lease));
      expect(read).toMatchObject({ code: isRefusing ? 'not_allowed' : 'none' });
      denyReading?.(false);
      expect(await store.current(lease)).toMatchObject({ value: CANARY });
      denyWriting?.(true);
      const written = await told(put(lease, `${CANARY}-2`));
      denyWriting?.(false);
      expect(written).toMatchObject({ code: denyWriting ? 'not_allowed' : 'none' });
      expect([read, written].join()).not.toContain(CANARY);
    });
  });
}

/** All that an error has to tell, with what caused it. */
async function told(work: Promise<unknown>): Promise<{ code: string; toString(): string }> {
  try {
    await work;
    return { code: 'none', toString: () => '' };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code, message, remedy, problems, stack, cause } = error;
    const all = JSON.stringify([message, remedy, problems, stack, String(cause), cause]);
    return { code, toString: () => all };
  }
}
