import { writeFile } from 'node:fs/promises';
import { expect, describe, test } from 'vitest';
import { openStorage } from '../../src/storage/storage.ts';
import { mainlyOn } from '../storage/databases.ts';
import { newIssuer, type Issuer, type LicensedMachine } from './issuer-and-machine.ts';
import { isAtLength } from '../length.ts';

const chain = ['--chain', 'root/license-root.json'] as const;
const key = (name: string): string[] => ['--key', `root/${name}.pem`];
const SIGN = ['root', 'sign-keyset', ...chain, '--yes', '--upload'] as const;

/** The daemon saw the lease work at every look. */
function expectNoLapse(machine: LicensedMachine): void {
  const states = machine.takeStates();
  expect(states.length).toBeGreaterThan(0);
  expect(new Set(states)).toEqual(new Set(['valid']));
}

/** Lets hours pass until the daemon has logged this. */
async function logged({ pass }: Issuer, machine: LicensedMachine, text: RegExp): Promise<void> {
  for (let hours = 0; !text.test(machine.log()) && hours < 10 * 24; hours += 6) await pass(0.25);
  expect(machine.log()).toMatch(text);
}

describe.each(mainlyOn('sqlite'))('with a root, a server on %s and a running daemon', (kind) => {
  const start = async (context: Parameters<typeof newIssuer>[1]) => {
    const issuer = await newIssuer(kind, context);
    const { fingerprint } = await issuer.identity<{ fingerprint: string }>(
      'root',
      'init',
      '--out',
      'root',
    );
    await issuer.identity(...SIGN, ...key('root-key-1'), ...issuer.code());
    const enroll = async (machine: LicensedMachine): Promise<void> => {
      const enrolled = await machine.license('enroll', '--code', await issuer.enrollmentCode());
      expect({ code: enrolled.code, error: enrolled.stderr }).toEqual({ code: 0, error: '' });
    };
    const machine = issuer.newMachine('machine');
    await enroll(machine);
    await machine.startDaemon();
    /** Signs the next key and starts the server with it. */
    const rotateKey = async (name: string, signer = key('root-key-1')) => {
      const next = await issuer.newKey(name);
      await issuer.identity(...SIGN, ...signer, `--add=${next.public_key}`);
      await issuer.restart(next);
      return next;
    };
    return { issuer, machine, fingerprint, enroll, rotateKey };
  };

  test('a machine follows a rotated signing key and forgets the retired one', async (context) => {
    const { issuer, machine, rotateKey } = await start(context);
    const former = await machine.lease();
    const next = await rotateKey('next');
    await issuer.pass(8);
    expectNoLapse(machine);
    expect(await machine.lease()).toMatchObject({ public_key_id: next.public_key_id });
    expect((await machine.trusted()).keys).toHaveLength(2);

    await issuer.pass(4);
    await issuer.identity('keys', 'retire', '--', former.public_key_id);
    await issuer.identity(...SIGN, ...key('root-key-1'));
    await issuer.pass(8);
    expectNoLapse(machine);
    expect(await machine.trusted()).toMatchObject({ keyset: 3, keys: [next.public_key_id] });
    expect(machine.log()).not.toMatch(/was not renewed|refused/);
  });

  test.runIf(isAtLength)(
    'a machine follows a rotated root, whose lost key no longer counts',
    async (context) => {
      const { issuer, machine, rotateKey, fingerprint } = await start(context);
      const pinned = issuer.newMachine('pinned', { SERVICE_LICENSE_ROOT: fingerprint });
      await issuer.identity('root', 'rotate', ...chain, ...key('root-key-1'), '--new-keys', '1');
      const old = await issuer.tryIdentity(...SIGN, ...key('root-key-1'));
      expect(old).toMatchObject({ code: 3 });
      await issuer.identity(...SIGN, ...key('root-key-v2-1'));
      await issuer.pass(8);
      expectNoLapse(machine);
      expect(await machine.trusted()).toMatchObject({ root: 2, keyset: 2 });

      const next = await rotateKey('next', key('root-key-v2-1'));
      await issuer.pass(8);
      expectNoLapse(machine);
      expect(await machine.lease()).toMatchObject({ public_key_id: next.public_key_id });
      // The first root stays a valid pin.
      const enrolled = await pinned.license('enroll', '--code', await issuer.enrollmentCode());
      expect(enrolled).toMatchObject({ code: 0 });
    },
  );

  test.runIf(isAtLength)(
    'an expired keyset still renews leases but admits no new machine, until the next keyset',
    async (context) => {
      const { issuer, machine, rotateKey, enroll } = await start(context);
      await issuer.identity(...SIGN, ...key('root-key-1'), '--expires-in', '10d');
      await issuer.pass(9);
      const before = await machine.lease();
      await issuer.pass(40);
      expectNoLapse(machine);
      expect((await machine.lease()).lease_id).not.toBe(before.lease_id);
      expect(await machine.trusted()).toMatchObject({ keyset: 2 });

      const late = issuer.newMachine('late');
      const refused = await late.license('enroll', '--code', await issuer.enrollmentCode());
      expect(refused.code).not.toBe(0);
      expect(refused.stderr).toMatch(/expired[^]*→ .*Ask the issuer to sign its keyset again/);
      const doctor = await machine.cli('doctor', '--json');
      expect(doctor.stdout).toMatch(/expired/);

      const next = await rotateKey('next');
      await issuer.pass(8);
      expectNoLapse(machine);
      expect(await machine.lease()).toMatchObject({ public_key_id: next.public_key_id });
      await enroll(late);
    },
  );

  test.runIf(isAtLength)(
    'an older keyset from a file or a restored database is refused',
    async (context) => {
      const { issuer, machine, rotateKey } = await start(context);
      const older = await issuer.published();
      const storage = await openStorage(issuer.database.location);
      context.onTestFinished(() => storage.close());
      const row = await storage.read
        .selectFrom('license_trust')
        .selectAll()
        .executeTakeFirstOrThrow();
      const next = await rotateKey('next');
      await issuer.pass(8);
      const newer = await machine.trusted();
      expect(newer).toMatchObject({ keyset: 2 });

      // A program that may write the files puts back what was there.
      await writeFile(machine.files.keyset, older);
      await issuer.pass(0.01);
      expect(machine.log()).toMatch(/put \S+license_public_key\.json back: .*version 1.*version 2/);
      expectNoLapse(machine);

      // A server that was restored from a backup publishes it.
      await storage.write(async (tx) => {
        await tx.deleteFrom('license_trust').execute();
        await tx.insertInto('license_trust').values(row).execute();
      });
      await logged(issuer, machine, /the published keys were refused: .*version 1.*version 2/);
      expectNoLapse(machine);
      expect(await machine.trusted()).toEqual(newer);
      const held = await machine.lease();
      const doctor = await machine.cli('doctor', '--json');
      expect(doctor.stdout).toMatch(/version 1/);

      // The chain file of the root's owner knows the later version, which mends the server.
      await issuer.identity(...SIGN, ...key('root-key-1'), `--add=${next.public_key}`);
      await issuer.pass(8);
      expect((await machine.lease()).lease_id).not.toBe((held as { lease_id: string }).lease_id);
      expect(await machine.trusted()).toMatchObject({ keyset: 3 });
    },
  );

  test.runIf(isAtLength)(
    'leases survive the loss of a root, and machines accept a new root by enrollment or pin',
    async (context) => {
      const { issuer, machine, fingerprint, enroll } = await start(context);
      const other = issuer.newMachine('other', { SERVICE_LICENSE_ROOT: fingerprint });
      await enroll(other);
      const stopOther = await other.startDaemon();
      await issuer.identity(...SIGN, ...key('root-key-1'), '--expires-in', '10d');
      await issuer.pass(30);
      expectNoLapse(machine);
      expectNoLapse(other);

      const made = ['root', 'init', '--out', 'other-root'];
      const { fingerprint: next } = await issuer.identity<{ fingerprint: string }>(...made);
      const upload = ['--chain', 'other-root/license-root.json', '--yes', '--upload'];
      const signer = ['--key', 'other-root/root-key-1.pem'];
      const sign = ['root', 'sign-keyset', ...upload, ...signer];
      await issuer.identity(...sign, '--replace', ...issuer.code());
      for (const one of [machine, other]) {
        await logged(
          issuer,
          one,
          /the published keys were refused: the keys of the server are not trusted: .*root/,
        );
        expectNoLapse(one);
      }

      await enroll(machine);
      await stopOther();
      const repinned = issuer.newMachine('other', { SERVICE_LICENSE_ROOT: next });
      await repinned.startDaemon();
      await issuer.pass(1);
      const signingKey = await issuer.newKey('next');
      await issuer.identity(...sign, `--add=${signingKey.public_key}`);
      await issuer.restart(signingKey);
      await issuer.pass(8);
      for (const one of [machine, repinned]) {
        expectNoLapse(one);
        expect(await one.lease()).toMatchObject({ public_key_id: signingKey.public_key_id });
        expect(await one.trusted()).toMatchObject({ root: 1, keyset: 4 });
      }
    },
  );
});
