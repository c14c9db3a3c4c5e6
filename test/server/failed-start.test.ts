import { expect, test, vi } from 'vitest';
import type { LicenseGate } from '../../src/gate/gate.ts';
import { createLog } from '../../src/base/log.ts';
import { startServer } from '../../src/server/server.ts';
import { resolveSettings } from '../../src/base/resolve-settings.ts';
import { newLicensePlace } from '../gate/license-place.ts';

const close = vi.hoisted(() => vi.fn<LicenseGate['close']>(async () => {}));
vi.mock('../../src/server/license.ts', () => ({ openOwnGate: async () => ({ close }) }));
vi.mock('../../src/server/app.ts', () => ({
  createApp() {
    throw new Error('two routes at one path');
  },
}));

test('a server that fails to start closes its license gate', async () => {
  const place = newLicensePlace();
  const env = { SERVICE_LOCAL_HOME: place.home, SERVICE_LOCAL_SERVER_PORT: '0' };
  const { values } = resolveSettings(place.home, env);
  const log = createLog(() => {}, true);
  await expect(startServer(values, {}, log)).rejects.toThrow('two routes at one path');
  expect(close).toHaveBeenCalledOnce();
  await place.remove();
});
