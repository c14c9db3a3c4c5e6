import { expect, it } from 'vitest';
import { newDatabase } from '../storage/databases.ts';
import { torture } from './torture.ts';

it('a killed server loses nothing that it acknowledged', async () => {
  const database = await newDatabase('sqlite');
  try {
    const { acknowledged, cutOff } = await torture(database, { rounds: 1, servers: 1, seed: 5 });
    expect(acknowledged.issue + acknowledged.renew).toBeGreaterThan(0);
    expect(cutOff.issue.sent + cutOff.renew.sent).toBeGreaterThan(0);
  } finally {
    await database.remove();
  }
});
