import { randomUUID } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { enroll } from '../../src/client/enrollment.ts';
import type { CheckResult } from '../../src/doctor/run-checks.ts';
import { openLicenseGate } from '../../src/gate/gate.ts';
import { ownMachineHash } from '../../src/gate/machine-id.ts';
import { createEnrollmentCode } from '../../src/identity/enrollment.ts';
import { updatePlan, type PlanChanges } from '../../src/identity/plans.ts';
import { machineHash } from '../../src/lease/use.ts';
import { licenseFiles, type LicenseFiles } from '../../src/gate/license-files.ts';
import { newWorld, type World } from '../identity/people.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { mainlyOn } from '../storage/databases.ts';
import { addAcme } from './acme.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';

const MACHINE = machineHash('b08dfa6083e7567a1921a715000001fb');
const OTHER_MACHINE = machineHash('00000000000000000000000000000001');

describe.each(mainlyOn('sqlite'))('the use of a lease, with a server on %s', (kind) => {
  let world: World;
  let server: ServerHere;
  let token: string;
  let directory: string;
  let home: string;
  let files: LicenseFiles;

  beforeAll(async () => {
    world = await newWorld(kind);
    world.now = Date.now();
    token = await (await world.newPerson()).token('license');
    await addAcme(world.identity, ['acme-tokyo']);
    server = await serveHere(world.database);
  });
  afterAll(async () => {
    await server.stop();
    await world.close();
  });
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'service-local-use-'));
    home = join(directory, 'home');
    files = licenseFiles(home, {});
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const plan = (changes: PlanChanges) => updatePlan(world.identity, 'operator', 'pro', changes);
  const newCode = async (): Promise<string> =>
    (await createEnrollmentCode(world.identity, 'operator', 'acme-tokyo')).code;
  /** Enrolls the machine whose id has this hash. */
  const enrollOn = async (machine: string | undefined): Promise<void> => {
    const { url } = server;
    const device = { files, url, clock: Date.now, warn() {}, machineHash: async () => machine };
    await enroll(device, await newCode(), 'host-1');
  };
  const license = (...words: string[]): Promise<Result> =>
    inProcess(['license', ...words], {
      env: { SERVICE_LOCAL_HOME: home, SERVICE_LOCAL_SERVER_URL: server.url },
    });
  /** Decision of a gate that a program on the machine opens. */
  const gate = async (product?: string, machine?: string, where = home): Promise<unknown> => {
    const opened = await openLicenseGate({
      enforced: true,
      files: licenseFiles(where, {}),
      warn: (text) => expect.fail(text),
      ...(product !== undefined && { product }),
      ...(machine !== undefined && { machineHash: async () => machine }),
    });
    const decision = opened.check('live_trading');
    await opened.close();
    return decision;
  };
  const VALID = { allowed: true, status: 'valid' };
  const rejection = (reason: string) =>
    expect.objectContaining({ allowed: false, reason }) as unknown;
  /** Runs `doctor`. @returns its check of the lease's use */
  const doctor = async (where = home, variables: object = {}): Promise<unknown> => {
    const { code, stdout } = await inProcess(['doctor', '--offline', '--json'], {
      env: { SERVICE_LOCAL_HOME: where, ...variables },
    });
    const { checks } = JSON.parse(stdout) as { checks: readonly CheckResult[] };
    const failed = checks.filter(({ status }) => status === 'fail').map((one) => one.code);
    const { summary, evidence, remedy } = checks.find((one) => one.code === 'lease_use')!;
    return { code, failed, reason: evidence['reason'] ?? null, summary, remedy };
  };
  const failing = (reason: string, remedy: string): object => ({
    code: 2,
    failed: ['lease_use'],
    reason,
    remedy: expect.stringContaining(remedy) as string,
  });
  /** Copies the license files to another home, except `left`. */
  const copyWithout = (...left: string[]): string => {
    const copy = join(directory, randomUUID());
    cpSync(home, copy, { recursive: true });
    for (const path of left) rmSync(path.replace(home, copy));
    return copy;
  };

  test('rejects a copied home without the private key, and accepts it with the key', async () => {
    await plan({ binding: 'device' });
    await enrollOn(undefined);
    expect(await gate()).toEqual(VALID);
    expect(await doctor()).toMatchObject({ failed: [], reason: null });
    const other = copyWithout(files.key);
    expect(await gate(undefined, undefined, other)).toEqual(rejection('no_device_key'));
    expect(await doctor(other)).toMatchObject(failing('no_device_key', 'license enroll'));
    const status = await inProcess(['license', 'status', '--json'], {
      env: { SERVICE_LOCAL_HOME: other },
    });
    expect(status.code).toBe(4);
    expect(JSON.parse(status.stdout)).toMatchObject({ state: 'none', reason: 'no_device_key' });
    await inProcess(['license', 'export-request', '--out', join(directory, 'request.jwt')], {
      env: { SERVICE_LOCAL_HOME: other },
    });
    expect(await gate(undefined, undefined, other)).toEqual(rejection('other_device'));
    expect(await doctor(other)).toMatchObject(failing('other_device', 'license enroll'));
  });

  test('a rotated key does not end a lease that is bound to the former one', async () => {
    await plan({ binding: 'device' });
    await enrollOn(undefined);
    const former = readFileSync(files.key, 'utf8');
    for (let rotation = 0; rotation < 2; rotation += 1) {
      expect(await license('rotate-key')).toMatchObject({ code: 0, stderr: '' });
      expect(readFileSync(files.formerKey, 'utf8')).toBe(former);
    }
    expect(await gate()).toEqual(VALID);
    expect(await license('renew', '--now')).toMatchObject({ code: 0 });
    expect(existsSync(files.formerKey)).toBe(false);
    expect(await gate()).toEqual(VALID);
  });

  test('rejects a home on another machine until that machine is enrolled', async () => {
    await plan({ binding: 'machine' });
    await enrollOn(MACHINE);
    expect(await gate(undefined, MACHINE)).toEqual(VALID);
    expect(await gate(undefined, OTHER_MACHINE, copyWithout())).toEqual(rejection('other_machine'));
    await enrollOn(OTHER_MACHINE);
    expect(await gate(undefined, OTHER_MACHINE)).toEqual(VALID);
    expect(await gate(undefined, MACHINE)).toEqual(rejection('other_machine'));
    const here = await ownMachineHash();
    const reason = here === undefined ? 'no_machine_id' : 'other_machine';
    expect(await gate()).toEqual(rejection(reason));
    expect(await doctor()).toMatchObject(failing(reason, here ? 'license enroll' : 'machine-id'));
  });

  test('rejects a machine without an id with the reason, and its code stays valid', async () => {
    await plan({ binding: 'machine' });
    await expect(enrollOn(undefined)).rejects.toMatchObject({
      code: 'not_allowed',
      reason: 'no_machine_id',
      remedy: expect.stringContaining('/etc/machine-id') as string,
    });
    expect(existsSync(files.lease)).toBe(false);
  });

  test('a machine that was enrolled before its plan needed the machine id gets a bound lease', async (context) => {
    context.skip((await ownMachineHash()) === undefined, 'this machine has no id');
    await plan({ binding: 'none' });
    await enrollOn(undefined);
    await plan({ binding: 'machine' });
    expect(await license('renew', '--now')).toMatchObject({ code: 0 });
    expect(await gate()).toEqual(VALID);
    expect(await gate(undefined, OTHER_MACHINE)).toEqual(rejection('other_machine'));
  });

  test('rejects a program of another product', async () => {
    await plan({ binding: 'none', product: 'trader' });
    await enrollOn(undefined);
    expect(await gate('trader')).toEqual(VALID);
    expect(await gate()).toEqual(VALID);
    expect(await gate('viewer')).toEqual(rejection('other_product'));
    await plan({ product: null });
    expect(await license('renew', '--now')).toMatchObject({ code: 0 });
    expect(await gate('service-local')).toEqual(VALID);
  });

  test('doctor fails for another product only if license_product is set', async () => {
    await plan({ binding: 'none', product: 'trader' });
    await enrollOn(undefined);
    expect(await doctor()).toMatchObject({
      failed: [],
      reason: null,
      summary: expect.stringMatching(/^for the product trader .* need a lease for service-local/),
    });
    const as = (name: string) => doctor(home, { SERVICE_LOCAL_LICENSE_PRODUCT: name });
    expect(await as('trader')).toMatchObject({
      failed: [],
      summary: 'for the product trader on every machine',
    });
    expect(await as('viewer')).toMatchObject(failing('other_product', 'license_product'));
    await plan({ product: null });
  });

  test('issues a bound lease only for the request of a machine', async () => {
    await plan({ binding: 'device' });
    const administer = (...words: string[]): Promise<Result> =>
      inProcess(['identity', 'leases', 'issue', '--deployment', 'acme-tokyo', ...words], {
        env: { ...server.env, SERVICE_LOCAL_TOKEN: token },
      });
    const { code, stdout } = await administer('--json');
    expect({ code, error: JSON.parse(stdout) as unknown }).toMatchObject({
      code: 4,
      error: { error: { code: 'not_allowed', reason: 'device_required' } },
    });
    const request = join(directory, 'request.jwt');
    expect(await license('export-request', '--out', request)).toMatchObject({ code: 0 });
    const lease = join(directory, 'lease.json');
    expect(await administer('--request', request, '--out', lease)).toMatchObject({ code: 0 });
    expect(await license('import', lease)).toMatchObject({ code: 0 });
    expect(await gate()).toEqual(VALID);
    renameSync(files.key, join(directory, 'device.key'));
    expect(await gate()).toEqual(rejection('no_device_key'));
  });
});
