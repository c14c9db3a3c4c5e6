/**
 * `npm run simulate:fleet [-- --devices N --days N --outage-hours N --seed N]`: whether a fleet comes
 * through an outage of the server without losing a lease, and what it does to the server when that is
 * back. See `server/fleet.ts` for what is real in it.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { formatTable, makeStyle } from '../src/cli/output.ts';
import { simulateFleet, type Span } from './server/fleet.ts';

const { values } = parseArgs({
  options: {
    devices: { type: 'string', default: '20000' },
    days: { type: 'string', default: '30' },
    'outage-hours': { type: 'string', default: '12' },
    seed: { type: 'string', default: '1' },
  },
});
const plan = {
  devices: Number(values.devices),
  days: Number(values.days),
  outageHours: Number(values['outage-hours']),
  seed: Number(values.seed),
};

const directory = mkdtempSync(join(tmpdir(), 'service-local-fleet-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
process.on('SIGINT', () => process.exit(130));

const hours = (seconds: number): string => (seconds / 3600).toFixed(2);
const span = ({ from, to }: Span): string => `hour ${hours(from)} to ${hours(to)}`;

const begin = performance.now();
const report = await simulateFleet(
  plan,
  join(directory, 'server.sqlite'),
  (day, leases, missed) => {
    if (leases + missed === 0) return;
    console.log(`day ${day}: ${leases} leases, ${missed} requests without an answer`);
  },
);
const seconds = (performance.now() - begin) / 1000;

const { traffic, outage, lapsed, refusals } = report;
const rows = [
  ['first leases', traffic.first] as const,
  ['after the outage', traffic.afterOutage] as const,
  ['from then on', traffic.calm] as const,
].map(([name, { leases, mean, busiestSecond, busiestMinute, ...when }]) => [
  name,
  span(when),
  String(leases),
  mean.toFixed(3),
  busiestMinute.toFixed(2),
  String(busiestSecond),
]);
const columns = ['', 'when', 'leases', 'mean/s', 'busiest minute/s', 'busiest second'].map(
  (title, i) => ({ title, align: i > 1 ? ('right' as const) : ('left' as const) }),
);
const answered = report.registered + refusals.length;
console.log(`outage: ${span(outage)}`);
process.stdout.write(formatTable(columns, rows, await makeStyle(false)));
console.log(
  `requests: ${answered + report.unanswered}, ${answered} of them answered; by one device at most ${report.mostRequests}, and ${report.mostRequestsInAnHour} in an hour`,
);
console.log(`refused: ${refusals.length}`);
console.log(`lapsed: ${lapsed.pastExpiry} past expiry, ${lapsed.pastGrace} past grace`);
console.log(`took ${seconds.toFixed(0)} s (seed ${plan.seed})`);
process.exitCode = refusals.length + lapsed.pastExpiry === 0 ? 0 : 1;
