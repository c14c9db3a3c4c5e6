import { expect, it } from 'vitest';
import { newDatabase } from '../storage/databases.ts';
import { torture } from './torture.ts';

it.each([
  ['on SQLite', 'sqlite', 1],
  ['of two on one PostgreSQL', 'postgres', 2],
] as const)(
  'a killed server %s has lost nothing that it acknowledged',
  async (_, kind, servers) => {
    const database = await newDatabase(kind);
    try {
      const { acknowledged, cutOff } = await torture(database, { rounds: 2, servers, seed: 5 });
      expect(acknowledged.issue + acknowledged.renew).toBeGreaterThan(0);
      expect(cutOff.issue.sent + cutOff.renew.sent).toBeGreaterThan(0);
    } finally {
      await database.remove();
    }
  },
);
