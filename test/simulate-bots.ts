/**
 * `npm run simulate:bots [-- --sessions N --speed N --seconds N --workers N]`: how many bars a second the
 * paper sessions of some workers record, and how late. By default, 1,000 sessions on two workers record
 * a bar a second each for ten minutes. See `server/paper-load.ts` for what is checked.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fillCatalogue } from './fleet/tasks/market.ts';
import { runPaperLoad } from './server/paper-load.ts';
import { startPostgres } from './storage/cluster.ts';
import { newDatabase } from './storage/databases.ts';

const { values } = parseArgs({
  options: {
    sessions: { type: 'string', default: '1000' },
    speed: { type: 'string', default: '60' },
    seconds: { type: 'string', default: '600' },
    workers: { type: 'string', default: '2' },
  },
});

const directory = mkdtempSync(join(tmpdir(), 'service-local-bots-'));
const cluster = await startPostgres([]);
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
try {
  await fillCatalogue(directory, 50_000);
  const database = await newDatabase('postgres', cluster.url);
  const { memory, lag, ...report } = await runPaperLoad(database, {
    sessions: Number(values.sessions),
    speed: Number(values.speed),
    seconds: Number(values.seconds),
    workers: Number(values.workers),
    catalogueDir: directory,
  });
  console.log(
    `${report.sessions} sessions: ${report.bars} bars, each once and in order; ${report.events} events in intact logs`,
  );
  console.log(`${Math.round(report.barsPerSecond)} bars a second, those of the start included`);
  const [median, p99, worst] = [lag.median, lag.p99, lag.worst].map((bars) => bars.toFixed(2));
  console.log(`lag in bars: median ${median}, 99th percentile ${p99}, worst ${worst}`);
  for (const worker of memory[0]!.keys()) {
    console.log(
      `memory of worker ${worker + 1}, MiB: ${memory.map((one) => one[worker]).join(' ')}`,
    );
  }
} finally {
  await cluster.stop();
}
