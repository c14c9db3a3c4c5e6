import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withNames } from '../../src/identity/actor-names.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { seedFleet } from '../server/console/fleet.ts';
import { mainlyOn, newTables, type TestDatabase } from '../storage/databases.ts';

describe.each(mainlyOn('sqlite'))('names of actors on %s', (kind) => {
  let database: TestDatabase;
  let storage: Storage;

  beforeAll(async () => {
    database = await newTables(kind);
    storage = await openStorage(database.location);
    await seedFleet(storage, Date.UTC(2026, 0, 2), 2);
    const factors = { password_hash: 'none', totp_secret: 'none', totp_last_step: 0 };
    const row = { administrator_id: 'a-1', name: 'ada', ...factors, created_at: 0 };
    await storage.write((tx) =>
      tx
        .insertInto('administrators')
        .values({ ...row, disabled_at: 1 })
        .execute(),
    );
  });
  afterAll(async () => {
    await storage.close();
    await database.remove();
  });

  const namesOf = async (...actors: (string | null)[]): Promise<(string | null)[]> => {
    const rows = actors.map((by) => ({ by }));
    return (await withNames(storage.read, rows, 'by')).map(({ by_name }) => by_name);
  };

  test('finds the names of devices and of administrators, including disabled ones', async () => {
    expect(await namesOf('administrator:a-1', 'device:device-00001')).toEqual([
      'ada',
      'host-00001',
    ]);
  });

  test('returns null for actors without a name', async () => {
    const nobody = ['operator', 'server', 'administrator:gone', 'device:a-1', "x:'--", '', null];
    expect(await namesOf(...nobody)).toEqual(nobody.map(() => null));
    expect(await namesOf('operator', null)).toEqual([null, null]);
    expect(await namesOf()).toEqual([]);
  });

  test('adds a name for each field and changes no other field', async () => {
    const row = { from: 'administrator:a-1', to: null, more: 1 };
    const named = await withNames(storage.read, [row, row], 'from', 'to');
    const expected = { ...row, from_name: 'ada', to_name: null };
    expect(named).toEqual([expected, expected]);
  });
});
