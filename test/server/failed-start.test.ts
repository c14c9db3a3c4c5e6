import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { FSWatcher } from 'chokidar';
import { expect, test, vi } from 'vitest';
import { createLog } from '../../src/base/log.ts';
import { startServer } from '../../src/server/server.ts';
import { resolveSettings } from '../../src/base/resolve-settings.ts';
import { newLicensePlace } from '../gate/license-place.ts';

test('a server that fails to start closes its license gate', async () => {
  const place = newLicensePlace();
  // The server reads this invalid file after its gate has started to watch the license.
  const knowledge = join(place.home, 'knowledge.yaml');
  writeFileSync(knowledge, 'instances: none');
  const env = {
    SERVICE_LOCAL_HOME: place.home,
    SERVICE_LOCAL_SERVER_PORT: '0',
    SERVICE_LOCAL_KNOWLEDGE_FILE: knowledge,
  };
  const { values } = resolveSettings(place.home, env);
  const log = createLog(() => {}, true);
  const watch = vi.spyOn(FSWatcher.prototype, 'add');
  const close = vi.spyOn(FSWatcher.prototype, 'close');
  await expect(startServer(values, {}, log)).rejects.toThrow('knowledge_file');
  expect(close.mock.contexts).toEqual(watch.mock.contexts);
  expect(close).toHaveBeenCalledOnce();
  vi.restoreAllMocks();
  await place.remove();
});
