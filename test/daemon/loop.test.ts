import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { deniedSince } from '../../daemon/denial.ts';
import { runLoop, type Tick } from '../../daemon/loop.ts';
import { renew } from '../../daemon/renewal.ts';
import { readState } from '../../daemon/daemon-state.ts';
import { storeLease } from '../../src/client/lease-store.ts';
import { backupOf } from '../../src/gate/license.ts';
import { formatTime } from '../../src/lease/time.ts';
import { createLog } from '../../src/base/log.ts';
import { DAY, HOUR, MINUTE, newRig, refusing, type Rig } from './rig.ts';
import { startStepped, type SteppedDaemon } from './stepped-daemon.ts';
import { isAtLength, some } from '../length.ts';

let rig: Rig;
let files: Rig['machine']['files'];

beforeEach(async () => {
  rig = await newRig();
  ({ files } = rig.machine);
});
afterEach(() => rig.close());

const state = () => readState(files.state);
const leaseFile = (): string => readFileSync(files.lease, 'utf8');
const run = (ms: number, onTick?: (tick: Tick) => Promise<void>): Promise<void> =>
  rig.runUntil(rig.serverNow + ms, onTick);

const start = (): Promise<SteppedDaemon> => startStepped(rig, rig.machine);

describe('leases of any length', () => {
  const LIVES: readonly (readonly [name: string, ms: number])[] = [
    ['10 minutes', 10 * MINUTE],
    ['1 day', DAY],
    ['90 days', 90 * DAY],
    ['1 hour', HOUR],
    ['12 hours', 12 * HOUR],
    ['3 days', 3 * DAY],
    ['7 days', 7 * DAY],
  ];

  test.each(some(3, LIVES))(
    'a lease of %s is renewed once per period, when it is due',
    async (_name, ttl) => {
      rig.ttlSeconds = ttl / 1000;
      await rig.enroll();
      const states = new Set<string | undefined>();
      await run(6 * ttl, async ({ status }) => void states.add(status?.state));
      const rest = Math.min(DAY, ttl / 3);
      // Each lease is renewed when between all and three quarters of the rest are left.
      const most = Math.ceil((6 * ttl) / (ttl - rest));
      const least = Math.floor((6 * ttl) / (ttl - 0.75 * rest + MINUTE));
      expect(rig.asked.length).toBeGreaterThanOrEqual(least);
      expect(rig.asked.length).toBeLessThanOrEqual(most);
      expect([...states]).toEqual(['valid']);
      expect(rig.log).toHaveLength(rig.asked.length);
    },
  );
});

describe('time', () => {
  beforeEach(() => rig.enroll());

  test.runIf(isAtLength)(
    'a lease goes from grace to expired in a long outage, and to valid after it',
    async () => {
      Object.assign(rig, { ttlSeconds: 6 * 3600, graceSeconds: 3600 });
      await rig.enroll();
      rig.isDown = true;
      const states: (string | undefined)[] = [];
      const note = async ({ status }: Tick): Promise<void> => {
        if (states.at(-1) !== status?.state) states.push(status?.state);
      };
      await run(8 * HOUR, note);
      expect(states).toEqual(['valid', 'grace', 'expired']);
      rig.isDown = false;
      await run(HOUR / 2, note);
      expect(states.at(-1)).toBe('valid');
    },
  );

  test.runIf(isAtLength)(
    'a clock set back by a day does not make a lease last longer',
    async () => {
      await run(2 * DAY);
      rig.now -= DAY;
      await run(4 * DAY - MINUTE);
      expect(rig.asked).toHaveLength(0);
      const reasons = new Set<string | null | undefined>();
      const note = async ({ status }: Tick): Promise<void> => void reasons.add(status?.reason);
      await run(6 * HOUR + 2 * MINUTE, note);
      expect(rig.asked).toHaveLength(1);
      expect([...reasons]).toEqual(['clock_rollback', 'not_yet_valid']);
      rig.now += DAY;
      let status: Tick['status'];
      await run(2 * MINUTE, async (tick) => void ({ status } = tick));
      expect(status).toMatchObject({ state: 'valid', reason: null });
    },
  );

  test.runIf(isAtLength)(
    'a clock set forward by a year causes no flood of requests, and has no effect once it is set back',
    async () => {
      await run(DAY);
      rig.now += 365 * DAY;
      await run(2 * DAY);
      expect(rig.asked.length).toBeLessThan(20);
      expect(await state()).toMatchObject({ last_error: { reason: 'due_at_once' } });
      rig.now -= 365 * DAY;
      const { length } = rig.asked;
      let status: Tick['status'];
      await run(5.5 * DAY, async (tick) => void ({ status } = tick));
      expect(status).toMatchObject({ state: 'valid', reason: null });
      expect(rig.asked).toHaveLength(length);
      await run(18 * HOUR);
      expect(rig.asked).toHaveLength(length + 1);
      expect(await state()).toMatchObject({ failures_in_row: 0, last_error: null });
    },
  );

  test('a clock set back during a wait after a failure does not lengthen the wait', async () => {
    rig.fault = refusing(403, 'license_revoked');
    await run(6 * DAY + 7 * HOUR);
    expect((await state()).next_attempt_because).toBe('denied');
    rig.fault = undefined;
    rig.now -= 30 * DAY;
    await run(MINUTE);
    expect(await state()).toMatchObject({ last_error: null, failures_in_row: 0 });
  });

  test('a suspended machine renews at once after it wakes up', async () => {
    const daemon = await start();
    rig.pass(7 * DAY);
    expect(await daemon.look()).toMatchObject({ status: { state: 'valid' } });
    expect(rig.asked).toHaveLength(1);
    await daemon.stop();
  });

  test('the running time of the machine is saved every hour', async () => {
    const daemon = await start();
    for (const minutes of [59, 2, 30]) {
      rig.pass(minutes * MINUTE);
      await daemon.look();
    }
    expect((await state()).running_time).toMatchObject({ seconds: 61 * 60 });
    await daemon.stop();
  });

  test('the running time of another machine does not count after the files moved', async () => {
    const daemon = await start();
    rig.pass(2 * HOUR);
    await daemon.look();
    await daemon.stop();
    [rig.bootId, rig.uptime] = ['other', (40 * DAY) / 1000];
    const other = await start();
    expect(await other.look()).toMatchObject({ status: { state: 'valid' } });
    expect((await state()).running_time).toMatchObject({ seconds: 7200, boot_id: 'other' });
    rig.pass(HOUR);
    await other.look();
    expect((await state()).running_time).toMatchObject({ seconds: 10_800 });
    await other.stop();
  });
});

describe('the state file', () => {
  beforeEach(() => rig.enroll());

  test('a state file that became unreadable is written again from memory', async () => {
    rig.pass(7 * DAY - HOUR);
    rig.fault = refusing(503, 'overloaded');
    const daemon = await start();
    const before = await state();
    expect(before.requests).toHaveLength(1);
    const spoil: (() => void)[] = [
      () => chmodSync(files.state, 0o644),
      () => writeFileSync(files.state, 'x'.repeat(300 * 1024)),
      () => writeFileSync(files.state, 'null'),
    ];
    for (const act of spoil) {
      act();
      await daemon.hangUp();
      rig.pass(1000);
    }
    const { requests, pending, failures_in_row } = await state();
    expect(requests).toHaveLength(4);
    expect(pending).toEqual(before.pending);
    expect(failures_in_row).toBe(4);
    expect(rig.log.filter((line) => line.includes('could be written again'))).toHaveLength(3);
    await daemon.stop();
  });

  test('running time counts even if the state could not be written since boot', async () => {
    await (await start()).stop();
    [rig.bootId, rig.uptime] = ['next', 10];
    rmSync(files.lock, { force: true });
    mkdirSync(files.lock);
    const daemon = await start();
    // The clock stands still, and the lease does not last longer for it.
    rig.uptime += (10 * DAY) / 1000 + 60;
    expect(await daemon.look()).toMatchObject({ status: { state: 'expired' } });
    await daemon.stop();
    rmSync(files.lock, { recursive: true });
  });

  test.runIf(isAtLength)(
    'the daemon waits after failures even if the state cannot be written',
    async () => {
      mkdirSync(files.state);
      rig.pass(7 * DAY - HOUR);
      await run(HOUR);
      expect(rig.requests).toEqual([]);
      expect(rig.log.length).toBeLessThan(4);
      rmSync(files.state, { recursive: true });
      await run(HOUR);
      expect(rig.leases).toHaveLength(2);
      expect((await state()).failures_in_row).toBe(0);
    },
  );
});

describe('the daemon', () => {
  test('the daemon of a machine that is not enrolled waits for the enrollment', async () => {
    const key = readFileSync(files.key);
    rmSync(files.key);
    const daemon = await start();
    expect(await state()).toMatchObject({
      next_attempt_at: null,
      next_attempt_because: 'not_enrolled',
    });
    await daemon.look();
    expect(rig.requests).toEqual([]);
    writeFileSync(files.key, key, { mode: 0o600 });
    expect(await daemon.notice()).toMatchObject({ status: { state: 'valid' } });
    expect(rig.log).toContainEqual(expect.stringContaining('this machine is enrolled'));
    await daemon.stop();
  });

  test('the daemon waits a minute at most, and writes nothing without a change', async () => {
    await rig.enroll();
    const daemon = await start();
    expect(daemon.waits()).toBe(MINUTE);
    const before = readFileSync(files.state, 'utf8');
    rmSync(files.state);
    renameSync(files.key, `${files.key}.away`);
    renameSync(`${files.key}.away`, files.key);
    writeFileSync(files.state, before, { mode: 0o400 });
    await daemon.look();
    // Clocks drift a little against the uptime, which moves the planned attempt.
    rig.now -= 2000;
    await daemon.look();
    expect(readFileSync(files.state, 'utf8')).toBe(before);
    await daemon.stop();
  });

  test('SIGHUP triggers a retry after a denial, but no renewal before it is due', async () => {
    await rig.enroll();
    const daemon = await start();
    await daemon.hangUp();
    expect(rig.requests).toEqual([]);
    rig.pass(7 * DAY - HOUR);
    rig.fault = refusing(403, 'license_revoked');
    await daemon.look();
    await daemon.look();
    expect(rig.asked).toHaveLength(1);
    await daemon.hangUp();
    expect(rig.asked).toHaveLength(2);
    rig.fault = undefined;
    expect(await daemon.hangUp()).toMatchObject({ state: { last_error: null } });
    await daemon.stop();
  });

  test('the daemon logs each failure, and a denial even if no renewal is due', async () => {
    await rig.enroll();
    const daemon = await start();
    rig.fault = refusing(403, 'license_revoked');
    const denied = formatTime(rig.now);
    await renew(rig.machine, { force: true });
    rig.pass(HOUR);
    await renew(rig.machine, { force: true });
    await daemon.look();
    await daemon.hangUp();
    const said = `the server has denied renewal since ${denied}: this is license_revoked`;
    expect(rig.log).toEqual([expect.stringContaining(said)]);
    await daemon.stop();
    await (await start()).stop();
    expect(rig.log).toHaveLength(2);
    expect(deniedSince(await state())).toBe(denied);

    rig.pass(7 * DAY);
    rig.fault = refusing(503, 'overloaded');
    rig.log.length = 0;
    const other = await start();
    await other.hangUp();
    expect(rig.log.filter((line) => line.includes('the lease was not renewed'))).toHaveLength(2);
    expect(await state()).toMatchObject({ failures_in_row: 4, denied_since: null });
    await other.stop();
  });

  test('a failure for a former lease does not delay the renewal of the current one', async () => {
    await rig.enroll();
    rig.pass(7 * DAY - HOUR);
    rig.fault = refusing(403, 'license_revoked');
    const daemon = await start();
    expect((await state()).next_attempt_because).toBe('denied');
    await storeLease(files.lease, rig.newLease());
    expect(await daemon.notice()).toMatchObject({
      state: { last_error: null, failures_in_row: 0, next_attempt_because: 'due', pending: null },
    });
    expect(rig.asked).toHaveLength(1);
    await daemon.stop();
  });

  test('a failure with a former device key does not delay the attempt with the next key', async () => {
    await rig.enroll();
    rig.pass(7 * DAY - HOUR);
    rig.fault = refusing(403, 'license_revoked');
    const daemon = await start();
    expect(rig.asked).toHaveLength(1);
    rig.fault = undefined;
    writeFileSync(`${files.key}.next`, readFileSync(files.key), { mode: 0o600 });
    renameSync(`${files.key}.next`, files.key);
    expect(await daemon.notice()).toMatchObject({ state: { last_error: null } });
    expect(rig.asked).toHaveLength(2);
    await daemon.stop();
  });

  test('an unexpected error during a renewal is logged with its stack, and does not end the daemon', async () => {
    await rig.enroll();
    rig.pass(7 * DAY - HOUR);
    rig.fault = refusing(403, 'not_allowed', 'machine_id_required');
    const machineHash = async (): Promise<string> => {
      throw new TypeError('unexpected');
    };
    const daemon = await startStepped(rig, { ...rig.machine, machineHash });
    expect(rig.log).toEqual([expect.stringContaining('TypeError: unexpected')]);
    expect((await daemon.look()).state.failures_in_row).toBe(1);
    await daemon.stop();
  });

  test('a failure is logged again for a new device key, even while the state cannot be saved', async () => {
    await rig.enroll();
    rig.pass(7 * DAY - HOUR);
    mkdirSync(files.state);
    const daemon = await start();
    await daemon.look();
    const failures = (): string[] => rig.log.filter((line) => line.includes('was not renewed'));
    expect(failures()).toHaveLength(1);
    writeFileSync(`${files.key}.next`, readFileSync(files.key), { mode: 0o600 });
    renameSync(`${files.key}.next`, files.key);
    await daemon.notice();
    expect(failures()).toHaveLength(2);
    await daemon.stop();
  });

  test('a change during a check leads to another check without a wait', async () => {
    await rig.enroll();
    const stop = new AbortController();
    let notice = (): void => {};
    let ticks = 0;
    const ticksAtWait: number[] = [];
    await runLoop(rig.machine, {
      signal: stop.signal,
      log: createLog((line) => rig.log.push(line), false),
      watch: (look) => {
        notice = look;
        return () => {};
      },
      onTick: () => {
        ticks += 1;
        if (ticks === 1) notice();
      },
      wait: async () => {
        ticksAtWait.push(ticks);
        stop.abort();
      },
    });
    expect(ticksAtWait).toEqual([2]);
  });

  test('a removed backup of the lease is restored', async () => {
    await rig.enroll();
    const daemon = await start();
    rmSync(backupOf(files.lease));
    await daemon.notice();
    expect(readFileSync(backupOf(files.lease), 'utf8')).toBe(leaseFile());
    await daemon.stop();
  });

  test('a daemon that ends during a request repeats the same renewal after a restart', async () => {
    await rig.enroll();
    rig.pass(7 * DAY - HOUR);
    const arrived = Promise.withResolvers<void>();
    rig.fault = () => arrived.resolve();
    const stop = new AbortController();
    const log = createLog((line) => rig.log.push(line), false);
    const running = runLoop(rig.machine, { signal: stop.signal, log });
    await arrived.promise;
    const begun = performance.now();
    stop.abort();
    await running;
    expect(performance.now() - begun).toBeLessThan(1000);
    expect(rig.log).toEqual([]);
    rig.fault = undefined;
    await run(MINUTE);
    const [first, second] = rig.asked;
    expect(second).toEqual(first);
  });

  test('the daemon continues when it cannot read the license files', async () => {
    await rig.enroll();
    const daemon = await start();
    const home = dirname(files.lease);
    renameSync(home, `${home}.away`);
    expect(await daemon.look()).toMatchObject({ status: { state: 'valid' } });
    rmSync(home, { recursive: true, force: true });
    renameSync(`${home}.away`, home);
    chmodSync(home, 0o700);
    rig.pass(MINUTE);
    expect(await daemon.look()).toMatchObject({ status: { state: 'valid' } });
    await daemon.stop();
  });
});
