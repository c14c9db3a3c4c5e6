import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { renew, type Outcome } from '../../daemon/renewal.ts';
import { NO_STATE, readState, writeState } from '../../daemon/daemon-state.ts';
import type { ServiceError } from '../../src/base/errors.ts';
import { deviceKeyAt } from '../../src/client/device-key.ts';
import { readAnchor } from '../../src/gate/anchor.ts';
import type { LeaseClaims } from '../../src/lease/claims.ts';
import { backupOf, readLicense } from '../../src/gate/license.ts';
import { formatTime } from '../../src/lease/time.ts';
import { fingerprintOf } from '../gate/signed-keyset.ts';
import { keysetOf, rootOf, testKey, type SigningKey } from '../lease/issuer.ts';
import {
  DAY,
  endorsed,
  giving as givingLease,
  HOUR,
  MINUTE,
  newRig,
  refusing,
  type Fault,
  type Rig,
} from './rig.ts';

let rig: Rig;

beforeEach(async () => {
  rig = await newRig();
  await rig.enroll();
});
afterEach(() => rig.close());

const now = (force = true): Promise<Outcome> => renew(rig.machine, { force });
const state = () => readState(rig.machine.files.state);
const leaseFile = (): string => readFileSync(rig.machine.files.lease, 'utf8');
const ids = (): string[] => rig.asked.map(({ renewal_id }) => renewal_id);

const times = (count: number, fault: Fault): void => {
  rig.fault = async (request) => {
    rig.fault = undefined;
    await fault(request);
    if (count > 1) times(count - 1, fault);
  };
};

/** The process ends while it waits for the answer to its request. */
async function killed(): Promise<void> {
  const process = new AbortController();
  rig.fault = () => process.abort();
  await expect(renew(rig.machine, { force: true, signal: process.signal })).rejects.toMatchObject({
    code: 'interrupted',
  });
  rig.fault = undefined;
}

describe('a renewal', () => {
  test('a renewal stores the new lease, its keys and a backup', async () => {
    const before = leaseFile();
    const outcome = await now();
    expect(outcome).toMatchObject({ status: 'renewed', limits: [], isSaved: true });
    expect(rig.asked[0]!.lease).toEqual(JSON.parse(before));
    const { files } = rig.machine;
    const { leases, refused } = await readLicense(files, rig.now);
    expect(leases.map(({ path }) => path)).toEqual([files.lease, backupOf(files.lease)]);
    expect(leases[0]!.claims.renewal_id).toBe(ids()[0]);
    expect(refused).toEqual([]);
    expect(await state()).toMatchObject({
      last_success_at: '2026-03-01T00:00:00Z',
      last_error: null,
      failures_in_row: 0,
      next_attempt_because: 'due',
      pending: null,
      requests: [rig.now, rig.now],
      running_time: { lease_id: 'lease-2', seconds: 0 },
    });
  });

  test('a renewal that is not due sends no request', async () => {
    const outcome = await now(false);
    expect(outcome).toMatchObject({ status: 'not_due', because: 'due' });
    rig.pass(7 * DAY - HOUR);
    expect(await now(false)).toMatchObject({ status: 'renewed' });
    expect(rig.asked).toHaveLength(1);
  });

  test('a renewal stores its id before the request, and uses it again after a kill', async () => {
    let kept: string | undefined;
    const process = new AbortController();
    rig.fault = async ({ rig: { machine } }) => {
      kept = (await readState(machine.files.state)).pending?.renewal_id;
      process.abort();
    };
    const { signal } = process;
    await expect(renew(rig.machine, { force: true, signal })).rejects.toMatchObject({
      code: 'interrupted',
    });
    expect(ids()).toEqual([kept]);
    rig.fault = undefined;
    await now();
    expect(ids()).toEqual([kept, kept]);
    await now();
    expect(new Set(ids()).size).toBe(2);
  });

  test('a renewal id is not used with another lease', async () => {
    await killed();
    await rig.enroll();
    await now();
    expect(new Set(ids()).size).toBe(2);
  });

  test('a renewal gets a new id if the server rejects the old one', async () => {
    times(1, refusing(422, 'idempotency_mismatch'));
    expect(await now()).toMatchObject({ status: 'renewed' });
    expect(new Set(ids()).size).toBe(2);
  });

  test('a renewal is repeated only once with a new id', async () => {
    rig.fault = refusing(422, 'idempotency_mismatch');
    expect(await now()).toMatchObject({ error: { code: 'idempotency_mismatch' } });
    expect(rig.asked).toHaveLength(2);
  });

  test('a renewal rejected for another reason than its lease is not repeated', async () => {
    rig.fault = refusing(400, 'invalid_request', 'not_json');
    expect(await now()).toMatchObject({ error: { code: 'invalid_request' } });
    expect(rig.asked).toHaveLength(1);
  });

  test.each([
    [403, 'not_allowed', 'other_device'],
    [403, 'not_allowed', 'other_deployment'],
    [400, 'invalid_request', 'unknown_lease'],
  ])(
    'after status %i %s %s, a renewal presents no lease until it has a new one',
    async (status, code, reason) => {
      times(1, async (request) => {
        await refusing(status, code, reason)(request);
        times(1, refusing(503, 'overloaded'));
      });
      expect(await now()).toMatchObject({ status: 'failed', error: { code: 'overloaded' } });
      expect(await now()).toMatchObject({ status: 'renewed' });
      expect(rig.asked.map(({ lease }) => lease === undefined)).toEqual([false, true, true]);
      const [first, ...others] = ids();
      expect(others).toEqual([others[0], others[0]]);
      expect(first).not.toBe(others[0]);
      await now();
      expect(rig.asked.at(-1)).toHaveProperty('lease');
    },
  );

  test('a second renewal does not start while one runs', async () => {
    rig.pass(7 * DAY);
    const [one, other] = await Promise.allSettled([now(false), now(false)]);
    const ends = [one, other].map((end) =>
      end.status === 'fulfilled' ? end.value.status : (end.reason as ServiceError).reason,
    );
    expect(ends).toContain('renewed');
    expect(['not_due', 'locked']).toContain(ends.find((end) => end !== 'renewed'));
    expect(rig.asked).toHaveLength(1);
  });

  test('a renewal requires a device key', async () => {
    const { key } = rig.machine.files;
    chmodSync(key, 0o644);
    expect(await now()).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_data', reason: 'not_private' },
      lease: { claims: { lease_id: 'lease-1' } },
    });
    rmSync(key);
    expect(await now()).toMatchObject({ status: 'not_due', because: 'not_enrolled', next: null });
    expect(rig.requests).toEqual([]);
  });

  test('a renewal fetches lost keys first, and requests no lease that is not due', async () => {
    rmSync(rig.machine.files.keyset);
    expect(await now(false)).toMatchObject({
      status: 'not_due',
      because: 'due',
      lease: { claims: { lease_id: 'lease-1' } },
    });
    expect([rig.requests.length, rig.asked.length]).toEqual([1, 0]);
    rmSync(rig.machine.files.keyset);
    expect(await now()).toMatchObject({ status: 'renewed' });
    expect(rig.asked[0]).toHaveProperty('lease');
  });

  test('a machine without keys stores none that verify neither its lease nor a new one', async () => {
    const { keyset } = rig.machine.files;
    rmSync(keyset);
    const foreign = testKey(2);
    rig.fault = async (request) => {
      const isKeyset = request.renewal_id === undefined;
      const answer = isKeyset
        ? givingLease(() => '', JSON.stringify({ keys: [foreign.jwk] }))
        : refusing(503, 'overloaded');
      await answer(request);
    };
    expect(await now()).toMatchObject({ status: 'failed', error: { code: 'overloaded' } });
    expect(existsSync(keyset)).toBe(false);
  });

  test('a renewal does not wait if the lease is lost', async () => {
    for (const path of [rig.machine.files.lease, backupOf(rig.machine.files.lease)]) rmSync(path);
    expect(await now(false)).toMatchObject({ status: 'renewed', lease: { claims: {} } });
    expect(rig.asked[0]).not.toHaveProperty('lease');
  });
});

test('a renewal stores only a lease that is no worse than the held one', async () => {
  const giving =
    (change: Partial<LeaseClaims>): Fault =>
    ({ outgoing, renewal_id }) => {
      outgoing.writeHead(200, { 'service-name': 'service-local', connection: 'close' });
      const keys = readFileSync(rig.machine.files.keyset, 'utf8');
      outgoing.end(renewal_id ? `{"lease":${rig.newLease({ renewal_id, ...change })}}` : keys);
    };
  rig.pass(HOUR);
  rig.fault = giving({ issued_at: '2026-02-28T00:00:00Z', ttl_seconds: (90 * DAY) / 1000 });
  expect(await now()).toMatchObject({ status: 'failed', error: { reason: 'older_lease' } });
  rig.fault = giving({ ttl_seconds: DAY / 1000 });
  expect(await now()).toMatchObject({ status: 'renewed' });
  const { leases } = await readLicense(rig.machine.files, rig.now);
  expect(leases.map(({ claims }) => claims.lease_id)).toEqual(['lease-3', 'lease-3']);
});

test('a renewal passes the warnings of the server on to the user', async () => {
  const warnings: string[] = [];
  rig.fault = ({ outgoing, renewal_id }) => {
    outgoing.writeHead(200, { 'service-name': 'service-local', connection: 'close' });
    const lease = renewal_id && rig.newLease({ renewal_id });
    const detail = 'the contract ends soon';
    const answer = `{"lease":${lease},"limits":[],"warnings":[{"detail":"${detail}"}]}`;
    outgoing.end(lease ? answer : JSON.stringify({ keys: [testKey(1).jwk] }));
  };
  const machine = { ...rig.machine, warn: (text: string) => void warnings.push(text) };
  expect(await renew(machine, { force: true })).toMatchObject({ status: 'renewed' });
  expect(warnings).toEqual(['the contract ends soon']);
});

test('a renewal removes the former device key, but not while the lease is bound to it', async () => {
  const { files } = rig.machine;
  await deviceKeyAt(files.formerKey);
  expect(await now()).toMatchObject({ status: 'renewed' });
  expect(existsSync(files.formerKey)).toBe(false);
  copyFileSync(files.key, files.formerKey);
  expect(await now()).toMatchObject({ status: 'renewed' });
  expect(existsSync(files.formerKey)).toBe(true);
});

describe('without a trust anchor', () => {
  const rejected = (change: Partial<LeaseClaims>): void => {
    rig.fault = givingLease(({ renewal_id }) =>
      rig.newLease({ renewal_id: renewal_id!, ...change }),
    );
  };

  test.each<[what: string, change: Partial<LeaseClaims>, reason: string]>([
    ['installation', { deployment_id: 'elsewhere' }, 'other_installation'],
    ['issuer', { issuer: 'https://elsewhere.example' }, 'other_issuer'],
  ])(
    'a lease of another %s than that of the held lease is rejected',
    async (_what, change, reason) => {
      const before = leaseFile();
      rejected(change);
      expect(await now()).toMatchObject({
        status: 'failed',
        error: { code: 'invalid_data', reason },
      });
      expect(leaseFile()).toBe(before);
    },
  );

  test('a lease of another issuer is stored if a person names its keys', async () => {
    const other = testKey(2);
    const keyset = JSON.stringify({ keys: [other.jwk] });
    const issuer = 'https://elsewhere.example';
    rig.fault = givingLease(
      ({ renewal_id }) => rig.newLease({ renewal_id: renewal_id!, issuer }, other),
      keyset,
    );
    expect(await renew(rig.machine, { force: true, keyset })).toMatchObject({
      status: 'renewed',
      lease: { claims: { issuer } },
    });
  });

  test('rejected keys change neither the keyset file nor the trust, while the held keys renew', async () => {
    const { files } = rig.machine;
    const keyset = JSON.stringify({ keys: [testKey(1).jwk] }, undefined, 4);
    writeFileSync(files.keyset, keyset);
    rig.fault = givingLease(
      ({ renewal_id }) => rig.newLease({ renewal_id: renewal_id! }),
      JSON.stringify({ keys: [testKey(1).jwk, testKey(2).jwk] }),
    );
    expect(await now()).toMatchObject({
      status: 'renewed',
      refusedKeyset: { reason: 'not_vouched_for' },
    });
    expect(readFileSync(files.keyset, 'utf8')).toBe(keyset);
    expect(existsSync(files.root)).toBe(false);
    const { leases } = await readLicense(files, rig.now);
    expect(leases.map(({ claims }) => claims.lease_id)).toEqual(['lease-2', 'lease-2']);
  });
});

test('a machine with a wrong clock gets a lease that is bound to the machine', async () => {
  rig.fault = ({ incoming, outgoing, renewal_id }) => {
    const [, claims = ''] = incoming.headers.authorization!.split('.');
    const isProven = Buffer.from(claims, 'base64url').includes('"nonce"');
    const answer = (status: number, body: string, headers = {}): void => {
      const all = { 'service-name': 'service-local', connection: 'close', ...headers };
      outgoing.writeHead(status, all).end(body);
    };
    if (renewal_id === undefined) return answer(200, JSON.stringify({ keys: [testKey(1).jwk] }));
    if (!isProven) return answer(401, '{"code":"invalid_device_proof"}', { 'service-nonce': 'x' });
    if ((rig.asked.at(-1) as { machine_hash?: string }).machine_hash === undefined) {
      return answer(403, '{"code":"not_allowed","reason":"machine_id_required","detail":"d"}');
    }
    return answer(201, `{"lease":${rig.newLease({ renewal_id })}}`);
  };
  const machine = { ...rig.machine, machineHash: async () => 'a'.repeat(43) };
  expect(await renew(machine, { force: true })).toMatchObject({ status: 'renewed' });
  expect(rig.requests).toHaveLength(5);
});

test('all requests of an attempt share one time limit', async () => {
  rig.timeoutMs = 400;
  rig.fault = async ({ outgoing }) => {
    await new Promise((resolve) => setTimeout(resolve, 250));
    const headers = { 'service-name': 'service-local', 'service-nonce': 'x', connection: 'close' };
    outgoing.writeHead(401, headers).end('{"code":"invalid_device_proof","detail":"d"}');
  };
  expect(await now()).toMatchObject({
    status: 'failed',
    error: { code: 'server_unreachable', message: expect.stringContaining('no answer in time') },
  });
});

describe('requests', () => {
  test('at most 30 requests are sent in an hour, even if forced', async () => {
    rig.fault = refusing(500, 'failure');
    while ((await now()).status === 'failed') rig.pass(1000);
    expect(rig.requests.length).toBe(26);
    const { next } = (await now()) as Outcome & { status: 'not_due' };
    expect(next).toBeGreaterThan(rig.now + 0.9 * HOUR);
    rig.pass(next! - rig.now);
    expect(await now()).toMatchObject({ status: 'failed' });
  });

  test('the hourly limit holds even if each attempt is killed', async () => {
    for (let i = 0; i < 6; i += 1) await killed();
    expect(await now()).toMatchObject({ status: 'not_due', because: 'rate_limit' });
    rig.pass(HOUR);
    expect(await now()).toMatchObject({ status: 'renewed' });
  });
});

describe('a failure', () => {
  test('a failure is stored with its code, and delays the next attempt', async () => {
    rig.fault = refusing(503, 'overloaded', undefined, { 'retry-after': '600' });
    await now();
    expect(await state()).toMatchObject({
      last_error: {
        at: '2026-03-01T00:00:00Z',
        code: 'overloaded',
        reason: null,
        message: 'this is overloaded (request_id x)',
      },
      failures_in_row: 1,
      next_attempt_because: 'retry',
      pending: { lease_id: 'lease-1' },
    });
    const at = Date.parse((await state()).next_attempt_at!);
    expect([at >= rig.now + 10 * MINUTE, at <= rig.now + 11 * MINUTE + 1000]).toEqual([true, true]);
    await now();
    expect((await state()).failures_in_row).toBe(2);
  });

  test.each([
    [403, 'license_revoked', undefined],
    [403, 'contract_ended', undefined],
    [409, 'credential_cloned', undefined],
    [401, 'invalid_device_proof', 'unknown_device'],
    [401, 'invalid_device_proof', 'revoked_device'],
  ])(
    'a failure with status %i %s %s is a denial, after which retries are rare',
    async (status, code, reason) => {
      const before = leaseFile();
      rig.fault = refusing(status, code, reason);
      expect(await now()).toMatchObject({ status: 'failed', error: { code } });
      expect(leaseFile()).toBe(before);
      const { next_attempt_because, next_attempt_at } = await state();
      expect(next_attempt_because).toBe('denied');
      expect(Date.parse(next_attempt_at!)).toBeGreaterThan(rig.now + 4 * HOUR);
    },
  );

  test.each([
    ['which the request then contains', 'a'.repeat(43), 'machine_id_required'],
    ['which this machine cannot read', undefined, 'no_machine_id'],
  ])('a failure for a missing machine id, %s, is not a denial', async (_which, hash, reason) => {
    rig.fault = refusing(403, 'not_allowed', 'machine_id_required');
    const machine = { ...rig.machine, machineHash: async () => hash };
    expect(await renew(machine, { force: true })).toMatchObject({ error: { reason } });
    const { next_attempt_because, next_attempt_at, denied_since } = await state();
    expect([next_attempt_because, denied_since]).toEqual(['retry', null]);
    expect(Date.parse(next_attempt_at!)).toBeLessThanOrEqual(rig.now + HOUR);
  });

  test('a denial recorded by an earlier version that no longer counts as one does not delay the next attempt', async () => {
    rig.pass(7 * DAY - HOUR);
    const at = formatTime(rig.now);
    await writeState(rig.machine.files.state, {
      ...(await state()),
      last_error: { at, code: 'not_allowed', reason: 'machine_id_required', message: 'm' },
      denied_since: at,
      failures_in_row: 1,
      next_attempt_at: formatTime(rig.now + 6 * HOUR),
      next_attempt_because: 'denied',
    });
    expect(await now(false)).toMatchObject({ status: 'renewed' });
  });

  test('no request is sent if its id cannot be stored', async () => {
    const { files } = rig.machine;
    mkdirSync(files.state);
    const outcome = await now();
    expect(outcome).toMatchObject({
      status: 'failed',
      isSaved: false,
      error: { code: 'output_not_writable' },
      state: { failures_in_row: 1 },
    });
    expect(rig.requests).toEqual([]);
    const again = await renew(rig.machine, { force: true, latest: outcome });
    expect(again.state.failures_in_row).toBe(2);
  });

  test('a lease that could not be stored is not lost', async () => {
    const { files } = rig.machine;
    const before = leaseFile();
    const backup = backupOf(files.lease);
    rmSync(backup);
    mkdirSync(backup);
    expect(await now()).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_data', reason: 'not_a_file' },
      lease: { claims: { lease_id: 'lease-1' } },
      unstored: { lease: { claims: { lease_id: 'lease-2' } } },
    });
    expect(leaseFile()).toBe(before);
    rmSync(backup, { recursive: true });
    expect(await now()).toMatchObject({
      status: 'renewed',
      lease: { claims: { lease_id: 'lease-2' } },
    });
    expect(new Set(ids()).size).toBe(1);
  });

  test('the keys of the held lease stay if a lease under a new key cannot be stored', async () => {
    const { files } = rig.machine;
    const [former, next] = [testKey(1), testKey(2)];
    rig.fault = givingLease(
      ({ renewal_id }) => {
        const known = rig.leases.find((lease) => lease.renewal_id === renewal_id);
        return rig.newLease(known ?? { renewal_id: renewal_id! }, next);
      },
      endorsed([next], former),
    );
    const held = async () => {
      const { leases, keyset } = await readLicense(files, rig.now);
      const lease = leases.find(({ path }) => path === files.lease);
      return [lease?.claims.public_key_id, keyset.ok && [...keyset.keys.keys()]];
    };
    const [formerId, nextId] = [former.jwk.kid, next.jwk.kid];
    const backup = backupOf(files.lease);
    rmSync(backup);
    mkdirSync(backup);
    expect(await now()).toMatchObject({ status: 'failed', error: { reason: 'not_a_file' } });
    expect(await held()).toEqual([formerId, [formerId]]);
    rmSync(backup, { recursive: true });
    expect(await now()).toMatchObject({ status: 'renewed' });
    expect(await held()).toEqual([nextId, [nextId]]);
  });
});

describe('trust', () => {
  const [KEY, NEXT, FOREIGN] = [testKey(1), testKey(2), testKey(3)];
  const ISSUER = 'https://licenses.example';
  const publish = (published: string, change: Partial<LeaseClaims> = {}, key = KEY): void => {
    rig.fault = givingLease(
      ({ renewal_id }) => rig.newLease({ renewal_id: renewal_id!, ...change }, key),
      published,
    );
  };
  const rooted = (
    keys: readonly SigningKey[],
    change: Parameters<typeof keysetOf>[2] = {},
    root = testKey(4),
  ): string =>
    JSON.stringify({
      keys: keys.map(({ jwk }) => jwk),
      roots: [rootOf([root])],
      keyset: keysetOf(keys, [root, KEY], {
        root: fingerprintOf(rootOf([root])),
        issuer: ISSUER,
        ...change,
      }),
    });
  const files = (): string[] => {
    const { lease, keyset, root } = rig.machine.files;
    return [lease, backupOf(lease), keyset, root].map((path) => readFileSync(path, 'utf8'));
  };

  beforeEach(async () => {
    publish(rooted([KEY], { version: 2 }));
    await now();
  });

  test('a machine with keys only gets a trust anchor at its first renewal', async () => {
    expect(await readAnchor(rig.machine.files.root)).toMatchObject({
      kind: 'held',
      installationId: 'deployment-1',
      issuer: ISSUER,
      held: { keyset: { version: 2 } },
    });
    const { keyset } = rig.machine.files;
    expect(JSON.parse(readFileSync(keyset, 'utf8'))).toEqual(
      JSON.parse(rooted([KEY], { version: 2 })),
    );
  });

  test.each<[what: string, reason: string, published: string, change: Partial<LeaseClaims>]>([
    ['a lease of another issuer', 'other_issuer', rooted([KEY], { version: 2 }), { issuer: 'x' }],
    [
      'a lease of another installation',
      'other_installation',
      rooted([KEY], { version: 2 }),
      { deployment_id: 'elsewhere' },
    ],
  ])('a renewal rejects %s and changes nothing', async (_what, reason, published, change) => {
    const before = files();
    publish(published, change);
    expect(await now()).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_data', reason },
      lease: { claims: { lease_id: 'lease-2' } },
    });
    expect(files()).toEqual(before);
    expect(await state()).toMatchObject({
      last_error: { code: 'invalid_data', reason },
      failures_in_row: 1,
      next_attempt_because: 'retry',
    });
    publish(rooted([KEY, NEXT], { version: 3 }), {}, NEXT);
    expect(await now()).toMatchObject({ status: 'renewed' });
  });

  const yesterday = () => formatTime(rig.now - DAY);
  test.each<[what: string, reason: string, published: () => string]>([
    ['unsigned keys', 'not_vouched_for', () => JSON.stringify({ keys: [KEY.jwk, NEXT.jwk] })],
    ['an older keyset', 'keyset_rollback', () => rooted([KEY, NEXT], { version: 1 })],
    ['another root', 'other_root', () => rooted([KEY, NEXT], { version: 3 }, testKey(5))],
    [
      'keys of another issuer',
      'other_issuer',
      () => rooted([KEY, NEXT], { version: 3, issuer: 'x' }),
    ],
    [
      'an expired keyset',
      'keyset_expired',
      () => rooted([KEY, NEXT], { version: 3, expires_at: yesterday() }),
    ],
  ])('a renewal rejects %s and uses the held keys', async (_what, reason, published) => {
    const before = files();
    publish(published(), {}, NEXT);
    expect(await now()).toMatchObject({
      status: 'failed',
      error: { code: 'invalid_data', reason },
    });
    expect(files()).toEqual(before);
    expect(await state()).toMatchObject({
      last_error: { code: 'invalid_data', reason },
      failures_in_row: 1,
      next_attempt_because: 'retry',
    });
    publish(published());
    expect(await now()).toMatchObject({ status: 'renewed', refusedKeyset: { reason } });
    expect(files().slice(2)).toEqual(before.slice(2));
    expect(await state()).toMatchObject({ last_error: null, refused_keyset: { reason } });
    publish(rooted([KEY, NEXT], { version: 3 }), {}, NEXT);
    expect(await now()).toMatchObject({ status: 'renewed', refusedKeyset: undefined });
    expect(await state()).toMatchObject({ refused_keyset: null });
  });

  test.each([
    ['is missing', undefined],
    ['is damaged', '{"keys":'],
    ['holds foreign keys', JSON.stringify({ keys: [FOREIGN.jwk] })],
  ])('a keyset file that %s is restored without a request', async (_what, text) => {
    const { keyset } = rig.machine.files;
    const before = files();
    if (text === undefined) rmSync(keyset);
    else writeFileSync(keyset, text);
    const { length } = rig.requests;
    expect(await now(false)).toMatchObject({ status: 'not_due', because: 'due' });
    expect(files()).toEqual(before);
    expect(rig.requests).toHaveLength(length);
  });

  test('the next renewal repairs a damaged trust anchor', async () => {
    const { root } = rig.machine.files;
    writeFileSync(root, '{');
    expect(await now()).toMatchObject({ status: 'renewed' });
    expect(await readAnchor(root)).toMatchObject({
      kind: 'held',
      installationId: 'deployment-1',
    });
  });
});

describe('the state', () => {
  test('an unreadable state is replaced', async () => {
    const { state: path } = rig.machine.files;
    expect(existsSync(path)).toBe(false);
    expect(await readState(path)).toEqual(NO_STATE);
    await writeState(path, { ...NO_STATE, failures_in_row: 3 });
    expect((await readState(path)).failures_in_row).toBe(3);
    chmodSync(path, 0o666);
    expect(await readState(path)).toBe(NO_STATE);
    chmodSync(path, 0o600);
    const wrong = [
      'a text',
      null,
      17,
      { schema: 2 },
      { schema: 1, requests: 'many' },
      { schema: 1, requests: ['many'] },
      { schema: 1, failures_in_row: null },
      { schema: 1, pending: {} },
      { schema: 1, pending: { renewal_id: '\u0000' } },
      { schema: 1, last_error: 'none' },
      { schema: 1, next_attempt_at: 'soon' },
      ...['many', 1e15, 1e300, -5].map((seconds) => ({
        schema: 1,
        running_time: { lease_id: 'a', seconds, boot_id: 'boot', uptime_seconds: 1 },
      })),
      { schema: 1, running_time: { lease_id: 'a', seconds: 1, uptime_seconds: 1 } },
    ];
    for (const one of wrong) {
      writeFileSync(path, JSON.stringify(one));
      expect(await readState(path), JSON.stringify(one)).toEqual(NO_STATE);
    }
  });
});
