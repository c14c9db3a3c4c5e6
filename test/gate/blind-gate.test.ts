import { FSWatcher } from 'chokidar';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import {
  DAY,
  KEY,
  keysetOf,
  leaseOf,
  newLicensePlace,
  type LicensePlace,
} from './license-place.ts';

let place: LicensePlace;
beforeEach(() => {
  place = newLicensePlace();
  // Watching fails as on a machine whose inotify watches are all in use.
  vi.spyOn(FSWatcher.prototype, 'add').mockImplementation(function (this: FSWatcher) {
    setImmediate(() => this.emit('error', new Error('ENOSPC: no watches left')));
    return this;
  });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await place.remove();
});

test('a gate without change events polls the files, and warns that changes are noticed late', async () => {
  const gate = await place.open({ pollMs: 20 });
  expect(gate.warnings).toEqual([
    'changes of the license are noticed within 0.02 s, not at once: ENOSPC: no watches left',
  ]);
  place.time.now += DAY;
  place.put(place.files.keyset, keysetOf(KEY));
  place.put(place.files.lease, leaseOf('1'));
  await gate.until(({ lease }) => lease?.lease_id === '1');
  place.put(place.files.lease, leaseOf('2', 1));
  await gate.until(({ lease }) => lease?.lease_id === '2');
  expect(gate.check('live_trading')).toEqual({ allowed: true, status: 'valid' });
});

test('a gate polls at least every 30 seconds', async () => {
  const gate = await place.open({ pollMs: 3_600_000 });
  expect(gate.warnings[0]).toContain('within 30 s');
});
