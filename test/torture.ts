/**
 * `npm run torture [-- --rounds N --seed N]`: kills servers with SIGKILL at random moments under load,
 * and looks for anything that was acknowledged and is gone, or was done twice: on SQLite, on
 * PostgreSQL, and with two servers on one PostgreSQL. See `server/torture.ts` for what is asked and
 * checked.
 */
import { parseArgs } from 'node:util';
import { newDatabase } from './storage/databases.ts';
import { startPostgres } from './storage/cluster.ts';
import { torture } from './server/torture.ts';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const rounds = Number(values.rounds);
const seed = Number(values.seed);

const cluster = await startPostgres([]);
try {
  for (const { name, kind, servers } of [
    { name: 'SQLite', kind: 'sqlite', servers: 1 },
    { name: 'PostgreSQL', kind: 'postgres', servers: 1 },
    { name: 'two servers on one PostgreSQL', kind: 'postgres', servers: 2 },
  ] as const) {
    console.log(`${name}: ${rounds} rounds, seed ${seed}`);
    const database = await newDatabase(kind, cluster.url);
    try {
      const begin = performance.now();
      const report = await torture(database, { rounds, servers, seed }, (round) => {
        if (round % 20 === 0) console.log(`  round ${round}`);
      });
      const { acknowledged, cutOff, auditEntries } = report;
      for (const deed of ['issue', 'renew', 'enrol', 'revoke'] as const) {
        const { sent, done } = cutOff[deed];
        console.log(
          `  ${deed}: ${acknowledged[deed]} acknowledged, all there; ${sent} cut off, of which ${done} had been done`,
        );
      }
      const seconds = Math.round((performance.now() - begin) / 1000);
      console.log(`  audit log: ${auditEntries} entries, unbroken; took ${seconds} s`);
    } finally {
      await database.remove();
    }
  }
} finally {
  await cluster.stop();
}
