import { afterEach, expect, test, vi } from 'vitest';
import { compareTasks } from '../../../src/fleet/comparisons/compare-tasks.ts';
import { newTestApp } from '../../server/in-process.ts';

afterEach(() => vi.unstubAllEnvs());

test('comparisons work again once the temporary directory is writable again', async () => {
  const server = await newTestApp();
  const { read } = server.services.tasks.storage;
  const compare = () => compareTasks(read, ['a', 'b']);
  vi.stubEnv('TMPDIR', '/dev/null/missing');
  for (let attempt = 0; attempt < 3; attempt += 1) {
    await expect(compare()).rejects.toMatchObject({ syscall: 'mkdtemp' });
  }
  vi.unstubAllEnvs();
  await expect(compare()).rejects.toMatchObject({ code: 'not_found' });
  await server.close();
});
