/**
 * `npm run simulate:fleet [-- --devices N --days N --outage-hours N --seed N --rotations]`: whether a
 * fleet comes through an outage of the server without losing a lease, and what it does to the server
 * when that is back. See `server/fleet.ts` for what is real in it.
 *
 * `--rotations` simulates a year in which the operator rotates the signing key each quarter and the
 * root once, and the keyset has expired for a month; by default with 500 devices, each of which
 * verifies what it gets.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { formatTable, makeStyle } from '../src/cli/output.ts';
import { simulateFleet, type Span } from './server/fleet.ts';

const { values } = parseArgs({
  options: {
    devices: { type: 'string' },
    days: { type: 'string' },
    'outage-hours': { type: 'string', default: '12' },
    seed: { type: 'string', default: '1' },
    rotations: { type: 'boolean', default: false },
  },
});
const plan = {
  devices: Number(values.devices ?? (values.rotations ? 500 : 20_000)),
  days: Number(values.days ?? (values.rotations ? 365 : 30)),
  outageHours: Number(values['outage-hours']),
  seed: Number(values.seed),
  rotations: values.rotations,
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
    if (leases + missed === 0 || plan.rotations) return;
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
for (const { day, name, traffic: after } of report.rotations) {
  console.log(
    `day ${day}: ${name}; that day ${after.leases} leases, in the busiest minute ${after.busiestMinute.toFixed(2)}/s`,
  );
}
if (plan.rotations) {
  console.log(`under the last key in the end: ${report.underLastKey} of ${plan.devices} machines`);
}
console.log(`refused: ${refusals.length}`);
console.log(`lapsed: ${lapsed.pastExpiry} past expiry, ${lapsed.pastGrace} past grace`);
console.log(`took ${seconds.toFixed(0)} s (seed ${plan.seed})`);
process.exitCode = refusals.length + lapsed.pastExpiry === 0 ? 0 : 1;
