/**
 * `npm run simulate:bots [-- --sessions N --speed N --seconds N --workers N]`: how many bars a second the
 * paper sessions of some workers record, and how late. By default, 1,000 sessions on two workers record
 * a bar a second each for ten minutes. It fails if a session lacks bars that were due, if 1 % of the bars
 * are a bar late, or if the memory of a worker grows. See `server/paper-load.ts`.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { fillCatalogue } from './fleet/tasks/market.ts';
import { findOverload, runPaperLoad } from './server/paper-load.ts';
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
  const report = await runPaperLoad(database, {
    sessions: Number(values.sessions),
    speed: Number(values.speed),
    seconds: Number(values.seconds),
    workers: Number(values.workers),
    catalogueDir: directory,
  });
  const { sessions, bars, fewest, due, seconds, events, memory, lag } = report;
  console.log(
    `${sessions} sessions in ${seconds} s: ${bars} bars, each once and in order; ${events} events in intact logs`,
  );
  console.log(`at least ${fewest} bars a session, of ${due} that were due`);
  console.log(`${Math.round(report.barsPerSecond)} bars a second`);
  const [median, p99, worst] = [lag.median, lag.p99, lag.worst].map((late) => late.toFixed(2));
  console.log(`lag in bars: median ${median}, 99th percentile ${p99}, worst ${worst}`);
  for (const worker of memory[0]!.keys()) {
    console.log(
      `memory of worker ${worker + 1}, MiB: ${memory.map((one) => one[worker]).join(' ')}`,
    );
  }
  const overload = findOverload(report);
  for (const what of overload) console.error(`too much load: ${what}`);
  if (overload.length > 0) process.exitCode = 1;
} finally {
  await cluster.stop();
}
