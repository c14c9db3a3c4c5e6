import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readState } from '../../daemon/daemon-state.ts';
import { readLicense } from '../../src/gate/license.ts';
import { parseTime } from '../../src/lease/time.ts';
import { DAY, FAULTS, HOUR, newRig, type Rig } from './rig.ts';

let rig: Rig;

beforeEach(async () => {
  rig = await newRig();
});
afterEach(() => rig.close());

/** The most requests within any hour. */
function busiestHour(requests: readonly number[]): number {
  let first = 0;
  return requests.reduce((most, at, i) => {
    while (requests[first]! <= at - 3600) first += 1;
    return Math.max(most, i - first + 1);
  }, 0);
}

test('the daemon keeps a valid lease through two weeks of a server that does everything wrong', async () => {
  // Each is due between 8 and 9 hours after its issue, when each fault has begun.
  rig.ttlSeconds = (12 * HOUR) / 1000;
  await rig.enroll();
  const { files } = rig.machine;
  const names = ['down', ...Object.keys(FAULTS)] as ('down' | keyof typeof FAULTS)[];
  const end = rig.serverNow + 14 * DAY;
  let lease = '';
  let latest = 0;
  const check = async (): Promise<void> => {
    const text = readFileSync(files.lease, 'utf8');
    if (text === lease) return;
    lease = text;
    const { leases } = await readLicense(files, rig.now);
    const held = leases.find(({ path }) => path === files.lease);
    expect(parseTime(held!.claims.expires_at)).toBeGreaterThanOrEqual(latest);
    latest = parseTime(held!.claims.expires_at)!;
  };
  for (const name of names) {
    rig.fault = name === 'down' ? undefined : FAULTS[name];
    rig.isDown = name === 'down';
    rig.timeoutMs = name === 'slow' ? 20 : 20_000;
    await rig.runUntil(rig.serverNow + 9.5 * HOUR, check);
    const before = await readState(files.state);
    expect.soft(before.failures_in_row, name).toBeGreaterThan(0);
    const given = rig.leases.length;
    const recovered = rig.serverNow;
    Object.assign(rig, { fault: undefined, isDown: false, timeoutMs: 20_000 });
    const longest = before.next_attempt_because === 'denied' ? 7.5 * HOUR : HOUR;
    await rig.runUntil(recovered + longest, check);
    expect.soft(rig.leases.length, name).toBe(given + 1);
    const state = await readState(files.state);
    expect.soft(state, name).toMatchObject({ last_error: null, failures_in_row: 0, pending: null });
  }
  await rig.runUntil(end, check);
  expect(busiestHour(rig.requests)).toBeLessThanOrEqual(30);
}, 60_000);
