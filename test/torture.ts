/**
 * `npm run torture [-- --only servers|bots|lease-file --rounds N --seed N --on NAME]`: kills processes
 * with SIGKILL at random moments, and searches for work that they had acknowledged and then lost.
 *
 * - servers, under load, on SQLite, on PostgreSQL, and two on one PostgreSQL; also for what was done
 *   twice. See `server/torture.ts` for what is asked and checked.
 * - bots, their backtests, paper sessions and halts, in the same way and with workers of their own;
 *   also for sessions that come to something else than without a crash. See `server/torture-bots.ts`.
 * - lease-file: processes that store one lease after the other; see `fault/torture.ts`.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { tortureLeaseFile } from './fault/torture.ts';
import { newDatabase } from './storage/databases.ts';
import { startPostgres } from './storage/cluster.ts';
import { torture } from './server/torture.ts';
import { tortureBots } from './server/torture-bots.ts';
import { fillCatalogue } from './fleet/tasks/market.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    rounds: { type: 'string', default: '200' },
    // Only on set-ups with this in their names.
    on: { type: 'string', default: '' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const rounds = Number(values.rounds);
const seed = Number(values.seed);

const PARTS: Readonly<Record<string, () => Promise<void>>> = {
  'lease-file': ofLeaseFile,
  servers: ofServers,
  bots: ofBots,
};
const { only } = values;
if (only !== undefined && !Object.hasOwn(PARTS, only)) {
  throw new Error(`--only takes ${Object.keys(PARTS).join(' or ')}`);
}
for (const [name, run] of Object.entries(PARTS)) if (name === (only ?? name)) await run();

async function ofLeaseFile(): Promise<void> {
  console.log(`lease file: ${rounds} rounds, seed ${seed}`);
  const begin = performance.now();
  const { stored, reads, untold, abandoned } = await tortureLeaseFile({ rounds, seed }, onRound);
  console.log(`  ${stored} leases stored, all there; looked at ${reads} times, and always whole`);
  console.log(`  ${untold} kills after which there was a later one, ${abandoned} that left a part`);
  console.log(`  took ${secondsSince(begin)} s`);
}

function onRound(round: number): void {
  if (round % 20 === 0) console.log(`  round ${round}`);
}

function secondsSince(begin: number): number {
  return Math.round((performance.now() - begin) / 1000);
}

async function ofServers(): Promise<void> {
  const cluster = await startPostgres([]);
  try {
    for (const { name, kind, servers } of [
      { name: 'SQLite', kind: 'sqlite', servers: 1 },
      { name: 'PostgreSQL', kind: 'postgres', servers: 1 },
      { name: 'two servers on one PostgreSQL', kind: 'postgres', servers: 2 },
    ] as const) {
      if (!name.includes(values.on)) continue;
      console.log(`${name}: ${rounds} rounds, seed ${seed}`);
      const database = await newDatabase(kind, cluster.url);
      try {
        const begin = performance.now();
        const report = await torture(database, { rounds, servers, seed }, onRound);
        const { acknowledged, cutOff, auditEntries } = report;
        for (const deed of ['issue', 'renew', 'enroll', 'revoke'] as const) {
          const { sent, done } = cutOff[deed];
          console.log(
            `  ${deed}: ${acknowledged[deed]} acknowledged, all there; ${sent} cut off, of which ${done} had been done`,
          );
        }
        console.log(
          `  audit log: ${auditEntries} entries, unbroken; took ${secondsSince(begin)} s`,
        );
      } finally {
        await database.remove();
      }
    }
  } finally {
    await cluster.stop();
  }
}

async function ofBots(): Promise<void> {
  const cluster = await startPostgres([]);
  const catalogueDir = await mkdtemp(join(tmpdir(), 'service-local-torture-'));
  try {
    await fillCatalogue(catalogueDir, 2000);
    for (const { name, kind, servers, workers } of [
      { name: 'bots on SQLite', kind: 'sqlite', servers: 1, workers: 0 },
      { name: 'bots of two servers on one PostgreSQL', kind: 'postgres', servers: 2, workers: 0 },
      { name: 'bots of a server and two workers', kind: 'postgres', servers: 1, workers: 2 },
    ] as const) {
      if (!name.includes(values.on)) continue;
      console.log(`${name}: ${rounds} rounds, seed ${seed}`);
      const database = await newDatabase(kind, cluster.url);
      try {
        const begin = performance.now();
        const plan = { rounds, servers, workers, seed, catalogueDir };
        const report = await tortureBots(database, plan, onRound);
        const waits = Object.entries(report.waits).map(([what, ms]) => `${what} ${ms}`);
        const deeds = Object.entries(report.acknowledged).map(
          ([deed, count]) => `${count} ${deed}`,
        );
        console.log(`  acknowledged, all there: ${deeds.join(', ')}; ${report.cutOff} cut off`);
        console.log(
          `  ${report.sessionsCompared} sessions left alone came to the same events, begun anew ${report.sessionsMoved} times`,
        );
        console.log(
          `  ${report.events} events, all chains unbroken; ${report.killed} processes killed; took ${secondsSince(begin)} s`,
        );
        console.log(`  longest waits, ms: ${waits.join(', ')}`);
      } finally {
        await database.remove();
      }
    }
  } finally {
    await rm(catalogueDir, { recursive: true });
    await cluster.stop();
  }
}
