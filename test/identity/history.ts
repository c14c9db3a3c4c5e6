import { endFault, GENESIS } from '../../src/base/hash-chain.ts';
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ServiceError } from '../../src/base/errors.ts';
import { readAudit, verifyAudit } from '../../src/identity/audit.ts';
import type { Identity } from '../../src/identity/context.ts';
import { reinstateInstallation } from '../../src/identity/installations.ts';
import { issueLease } from '../../src/identity/issue.ts';
import { retireKey } from '../../src/identity/signing-keys.ts';
import type { Signer } from '../../src/identity/signing-key.ts';
import type { DevicesTable } from '../../src/storage/tables.ts';
import { INSTALLATIONS } from './devices.ts';
import { DAY, newSigner, readAnswer, renew, revokeAs, type LeaseWorld } from './lease-world.ts';

const installations = fc.constantFrom(...INSTALLATIONS);
/** Index from the end of a list. */
const which = fc.nat({ max: 3 });

export const anyEvent = fc.oneof(
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat({ max: 5 * DAY }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('enroll' as const), deployment_id: installations }),
  },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('renew' as const),
      device: which,
      lease: fc.option(which, { nil: undefined, freq: 3 }),
      enforced: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('issue' as const),
      deployment_id: installations,
      ttl: fc.integer({ min: 300, max: 90 * 86_400 }),
      grace: fc.integer({ min: 0, max: 30 * 86_400 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('revoke lease' as const), lease: which }) },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('revoke installation' as const),
      deployment_id: installations,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('reinstate' as const), deployment_id: installations }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('new key' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('retire' as const), key: which }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('contract ends' as const),
      inMs: fc.integer({ min: -DAY, max: 30 * DAY }),
    }),
  },
);

type Event = typeof anyEvent extends fc.Arbitrary<infer T> ? T : never;
type EventOf<Name extends Event['do']> = Extract<Event, { do: Name }>;

/** An issued lease, as the model knows it. */
interface Given {
  readonly lease: unknown;
  readonly id: string;
  readonly key: string;
  readonly installation: string;
  readonly device: string | null;
  /** Id of the first lease of the chain of renewals. */
  readonly lineage: string;
  readonly graceEnds: number;
  revoked: boolean;
}

/** The service, and a model that is derived from the events only. */
export class History {
  readonly world: LeaseWorld;
  readonly devices: DevicesTable[] = [];
  readonly leases: Given[] = [];
  readonly keys: Signer[];
  readonly revokedInstallations = new Set<string>();
  contractEnds = Number.POSITIVE_INFINITY;

  constructor(world: LeaseWorld) {
    this.world = world;
    this.keys = [world.identity.signer as Signer];
  }

  service(enforced = true): Identity {
    return this.world.with({
      policy: { registry_enforced: enforced },
      signer: this.keys.at(-1)!,
    });
  }

  async apply(event: Event): Promise<void> {
    switch (event.do) {
      case 'wait':
        this.world.now += event.ms;
        return;
      case 'enroll':
        this.devices.push(await this.world.enroll(event.deployment_id));
        return;
      case 'renew':
        await this.renew(this.devices.at(-1 - event.device), event.lease, event.enforced);
        return;
      case 'issue':
        await this.issue(event);
        return;
      case 'revoke lease':
        await this.revokeLease(this.leases.at(-1 - event.lease));
        return;
      case 'revoke installation':
        await revokeAs(this.world, this.service(), event, event.deployment_id);
        this.revokedInstallations.add(event.deployment_id);
        return;
      case 'reinstate':
        await reinstateInstallation(this.service(), 'operator', event.deployment_id);
        this.revokedInstallations.delete(event.deployment_id);
        return;
      case 'new key':
        this.world.now += 1;
        this.keys.push(await newSigner(this.world.identity));
        return;
      case 'retire':
        await this.retire(this.keys.at(-1 - event.key));
        return;
      case 'contract ends':
        await this.endContract(event.inMs);
        return;
    }
  }

  async renew(
    device: DevicesTable | undefined,
    place: number | undefined,
    enforced: boolean,
  ): Promise<void> {
    if (device === undefined) return;
    const own = this.leases.filter(({ installation }) => installation === device.deployment_id);
    const held = place === undefined ? undefined : own.at(-1 - place);
    const isRevoked =
      this.revokedInstallations.has(device.deployment_id) ||
      (held?.revoked ?? false) ||
      own.some(({ revoked, device: holder }) => revoked && holder === device.device_id);
    const body = await orRefusal(async () => {
      const { renewed } = await renew(this.service(enforced), device, held?.lease);
      return renewed.body;
    });
    const isOwn = held === undefined || [null, device.device_id].includes(held.device);
    if (!isOwn) assertRefused(body, 'not_allowed');
    else if (enforced && isRevoked) assertRefused(body, 'license_revoked');
    else if (this.hasEnded()) assertRefused(body, 'contract_ended');
    else await this.give(body as string, device.device_id, held);
  }

  async issue({ deployment_id, ...wishes }: EventOf<'issue'>): Promise<void> {
    const { caller } = this.world;
    const body = await orRefusal(() =>
      issueLease(this.service(), caller, {
        deployment_id,
        ttl_seconds: wishes.ttl,
        grace_period_seconds: wishes.grace,
      }),
    );
    if (this.revokedInstallations.has(deployment_id)) {
      assertRefused(body, 'license_revoked');
    } else if (this.hasEnded()) assertRefused(body, 'contract_ended');
    else await this.give(body as string, null, undefined);
  }

  /** Records a lease, and checks that it does not outlive its contract. */
  async give(body: string, device: string | null, parent: Given | undefined): Promise<void> {
    const { answer, claims } = await readAnswer(this.world.identity, body);
    const graceEnds = Date.parse(claims.grace_ends_at);
    assert.ok(graceEnds <= this.contractEnds, `${claims.grace_ends_at} outlives the contract`);
    assert.equal(claims.previous_lease_id, parent?.id);
    const { lease_id: id, deployment_id: installation, public_key_id: key } = claims;
    // A server without enforcement renews revoked leases, and the renewals are not revoked.
    this.leases.push({
      lease: answer.lease,
      id,
      key,
      installation,
      device,
      lineage: parent?.lineage ?? id,
      graceEnds,
      revoked: false,
    });
  }

  async revokeLease(lease: Given | undefined): Promise<void> {
    if (lease === undefined) return;
    await revokeAs(this.world, this.service(), { lease_id: lease.id }, lease.installation);
    const line = this.leases.filter(({ lineage }) => lineage === lease.lineage);
    const machines = new Set(line.map(({ device }) => device).filter((device) => device !== null));
    for (const one of this.leases) {
      if (line.includes(one) || (one.device && machines.has(one.device))) one.revoked = true;
    }
  }

  async retire(key: Signer | undefined): Promise<void> {
    if (key === undefined) return;
    const id = key.publicKeyId;
    const outcome = await orRefusal(async () => {
      await retireKey(this.service(), 'administrator:root', id);
      return 'retired';
    });
    const couldBeInUse = this.leases.some(
      (lease) => lease.key === id && lease.graceEnds + 300_000 > this.world.now,
    );
    const isActive = key === this.keys.at(-1);
    if (isActive || couldBeInUse) assertRefused(outcome, 'key_in_use');
    else assert.equal(outcome, 'retired');
  }

  async endContract(inMs: number): Promise<void> {
    this.contractEnds = this.world.now + inMs;
    await this.world.identity.storage.write((tx) =>
      tx.updateTable('contracts').set({ ends_at: this.contractEnds }).execute(),
    );
  }

  hasEnded(): boolean {
    const second = Math.floor(this.world.now / 1000) * 1000;
    return this.contractEnds - second < 1000;
  }

  async checkAudit(): Promise<void> {
    const { entries, head } = await readAudit(this.world.identity.storage.read, 0, 1000);
    const last = verifyAudit(GENESIS, entries);
    assert.ok(!('fault' in last), JSON.stringify(last));
    assert.equal(endFault(last, head), undefined);
    const renewals = entries.filter(({ action }) => /license\.(issue|renew)$/.test(action));
    assert.deepEqual(
      renewals.map(({ target }) => target),
      this.leases.map(({ id }) => `lease:${id}`),
    );
  }
}

function assertRefused(outcome: unknown, code: string): void {
  assert.ok(outcome instanceof ServiceError, `instead of ${code}: ${String(outcome)}`);
  assert.equal(outcome.code, code);
}

async function orRefusal<T>(work: () => Promise<T>): Promise<T | ServiceError> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
}
