import { hash, randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ServiceError } from '../../../src/base/errors.ts';
import type { SecretStore } from '../../../src/deploy/cloud/secret-store.ts';

export interface StoreUnderTest {
  readonly store: SecretStore;
  /** Whether the store keeps the previous value. */
  readonly keepsPrevious: boolean;
  /** Makes the next write take effect, but loses its response. */
  readonly loseAnswer?: () => void;
  /** Makes the next request fail with a rate limit. */
  readonly throttle?: () => void;
  readonly denyReading?: (isDenied: boolean) => void;
  readonly denyWriting?: (isDenied: boolean) => void;
  close(): Promise<void>;
}

const CANARY = 'canary-secret-value';

/** Tests that every secret store must pass. */
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

    test('returns the last value of each secret', async () => {
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
      // File systems round times, hence the tolerance of 20 ms.
      expect(current!.created_at).toBeGreaterThanOrEqual(before - 20);
      expect(await store.current(keys)).toMatchObject({ value: `{"keys":"${CANARY}"}` });
      expect((await store.previous(lease))?.value).toBe(keepsPrevious ? 'first' : undefined);
    });

    test('ignores a repeated write of the current value, and can restore an old value', async () => {
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

    test('writes a value once despite a lost response or a rate limit', async () => {
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

    test('writes without permission to read, and reports denied access without the value', async () => {
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

/** The code of an error, and everything that it reveals. */
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
