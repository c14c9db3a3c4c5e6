import { chmodSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { TEMPORARY } from './scratch.ts';

const root = import.meta.dirname;

/** The code that checks signatures is tried as it is; all others get another that is quick. */
export const LEASES = 'lease/**/*.test.ts';

/** For `vitest.long.config.ts`. */
export const LONG = '**/*.long.test.ts';

/** Files that put a module of theirs in the place of another: in a process that no other file has. */
const withMocks = [...filesWith('vi.mock('), ...filesWith('vi.resetModules(')];

/** Test files with that text in them. */
export function filesWith(text: string): string[] {
  const files = globSync('**/*.test.ts', { cwd: root });
  return files.filter((file) => readFileSync(join(root, file), 'utf8').includes(text));
}

/** Of this run alone, so that nothing is left of what its tests make, also of those it killed. */
const temporary = mkdtempSync(join(TEMPORARY, 'sl-'));
// Some tests give up privileges.
chmodSync(temporary, 0o1777);
process.once('exit', () => rmSync(temporary, { recursive: true, force: true }));

/** Of every project. */
export const test = {
  root,
  // Most tests start processes, and the machine may be busy with others.
  testTimeout: 60_000,
  hookTimeout: 60_000,
  // What one process of a test has compiled, the next ones do not compile again.
  env: {
    TMPDIR: temporary,
    SERVICE_LOCAL_TEST_DISK: tmpdir(),
    NODE_COMPILE_CACHE: join(tmpdir(), 'service-local-compile-cache'),
    SERVICE_LOCAL_TEST_SEED: '1',
  },
  setupFiles: 'properties.ts',
};

export const alias = { tweetnacl: fileURLToPath(import.meta.resolve('./lease/native-ed25519.ts')) };

/** Of every run. */
export const run = {
  // Many tests wait for processes of theirs: one file at a time for each processor leaves it idle.
  maxWorkers: availableParallelism() + 1,
  globalSetup: 'storage/cluster.ts',
};

export default defineConfig({
  test: {
    root,
    ...run,
    projects: [
      // What one file has imported, the next ones of the same process do not import again.
      {
        test: {
          ...test,
          alias,
          name: 'together',
          isolate: false,
          exclude: [LEASES, LONG, ...withMocks],
        },
      },
      { test: { ...test, alias, name: 'alone', include: withMocks } },
      {
        test: { ...test, name: 'leases', isolate: false, include: [LEASES], exclude: [LONG] },
      },
    ],
  },
});
