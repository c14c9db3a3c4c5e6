import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { formatTime } from '../../src/lease/time.ts';
import { DAY, KEY, keysetOf, leaseOf } from '../gate/license-place.ts';
import { inProcess } from './in-process.ts';

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-materialize-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

test('writes the license of a container to the files that its API reads', async () => {
  const files = {
    lease: join(directory, 'license', 'lease'),
    keyset: join(directory, 'license', 'keys'),
  };
  const lease = leaseOf('1', 0, { issued_at: formatTime(Date.now()) });
  const env = {
    SERVICE_LICENSE_LEASE_PATH: files.lease,
    SERVICE_LICENSE_PUBLIC_KEY_PATH: files.keyset,
    SERVICE_LICENSE_LEASE: Buffer.from(lease).toString('base64'),
    SERVICE_LICENSE_PUBLIC_KEY: keysetOf(KEY),
  };
  const first = await inProcess(['license', 'materialize'], { env });
  expect(first).toMatchObject({ code: 0, stderr: '' });
  expect(first.stdout).toMatch(
    new RegExp(
      `^${files.keyset} was written\\.\\n${files.lease} was written\\.\\nThe lease is valid until .*Z, with grace until .*Z\\.\\n$`,
    ),
  );
  expect(readFileSync(files.lease, 'utf8')).toBe(lease);

  const again = await inProcess(['license', 'materialize', '--json'], { env });
  expect(JSON.parse(again.stdout)).toMatchObject({
    lease: { file: files.lease, outcome: 'same' },
    keyset: { file: files.keyset, outcome: 'same' },
    state: 'valid',
    reason: null,
    lease_id: '1',
  });

  const torn = { ...env, SERVICE_LICENSE_LEASE: lease.slice(0, 99) };
  const rejected = await inProcess(['license', 'materialize'], { env: torn });
  expect(rejected).toMatchObject({ code: 3, stdout: '' });
  expect(rejected.stderr).toMatch(
    /^error invalid_data: the value of SERVICE_LICENSE_LEASE is refused/,
  );
  expect(readFileSync(files.lease, 'utf8')).toBe(lease);

  const home = { SERVICE_LOCAL_HOME: join(directory, 'home'), SERVICE_LICENSE_LEASE: lease };
  const ended = leaseOf('0', 0, { issued_at: formatTime(Date.now() - 11 * DAY) });
  const late = { ...home, SERVICE_LICENSE_LEASE: `{"lease":${ended},"keyset":${keysetOf(KEY)}}` };
  const useless = await inProcess(['license', 'materialize'], { env: late });
  expect(useless).toMatchObject({ code: 4 });
  expect(useless.stdout).toMatch(/ was written\.\n.* was written\.\n$/);
  expect(useless.stderr).toMatch(
    /^error license_invalid: no valid license: the lease ended on 20\S+Z\n→ Set SERVICE_LICENSE_LEASE to a lease/,
  );
  expect(await inProcess(['license', 'materialize'], { env: home })).toMatchObject({ code: 0 });

  const nothing = await inProcess(['license', 'materialize']);
  expect(nothing).toMatchObject({ code: 2, stdout: '' });
});
