import {
  chmodSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rm,
  rmSync,
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { TEMPORARY } from './scratch.ts';
import { SlowFirst } from './slow-first.ts';

const root = import.meta.dirname;

/** Test files that use the real cryptography; all others use `cheap-cryptography.ts`. */
export const REAL_CRYPTOGRAPHY = [
  ...globSync('lease/**/*.test.ts', { cwd: root }),
  'identity/password.test.ts',
];

export const LONG = '**/*.long.test.ts';

/** Files that replace modules, and therefore need a process of their own. */
const withMocks = [...filesWith('vi.mock('), ...filesWith('vi.resetModules(')];

export function filesWith(text: string): string[] {
  const files = globSync('**/*.test.ts', { cwd: root });
  return files.filter((file) => readFileSync(join(root, file), 'utf8').includes(text));
}

/** Temporary directory of this run, removed at its end even if tests were killed. */
const temporary = mkdtempSync(join(TEMPORARY, 'sl-'));
// Some tests run processes as other users.
chmodSync(temporary, 0o1777);
mkdirSync(join(temporary, 'home'));
process.once('exit', () => rmSync(temporary, { recursive: true, force: true }));

/**
 * Compile cache of all processes that tests start. Node removes nothing from it, so that each week
 * begins a new one.
 */
const COMPILE_CACHE = 'service-local-compile-cache-';
const week = `${COMPILE_CACHE}${Math.floor(Date.now() / (7 * 86_400_000))}`;
for (const name of readdirSync(tmpdir())) {
  if (!name.startsWith(COMPILE_CACHE) || name === week) continue;
  rm(join(tmpdir(), name), { recursive: true, force: true }, () => {});
}

/** Options of every project. */
export const test = {
  root,
  // Most tests start processes, and the machine may be busy.
  testTimeout: 60_000,
  hookTimeout: 60_000,
  env: {
    TMPDIR: temporary,
    // No test reads or writes the files of the developer.
    HOME: join(temporary, 'home'),
    SERVICE_LOCAL_HOME: join(temporary, 'home/.service-local'),
    SERVICE_LOCAL_TEST_DISK: tmpdir(),
    NODE_COMPILE_CACHE: join(tmpdir(), week),
    SERVICE_LOCAL_TEST_SEED: '1',
  },
  setupFiles: ['properties.ts'],
  // Tests create many objects that do not live long, for which the default of 16 MiB is small.
  // Other workers use the other processors: collecting garbage on several threads costs more.
  execArgv: ['--max-semi-space-size=64', '--single-threaded-gc'],
};

export const withCheapCryptography = { ...test, setupFiles: [...test.setupFiles, 'setup.ts'] };

/**
 * Node imports the files itself, as it does for users, because code that Vite transforms takes longer to
 * load and to run. Without isolation, test files in one process share imported modules.
 */
const together = {
  isolate: false,
  experimental: { viteModuleRunner: false, nodeLoader: false },
};

/** Options of every run. */
export const run = {
  // Tests also wait for processes and timers, so that one worker per processor would leave some idle.
  // More than one in addition only makes them compete.
  maxWorkers: availableParallelism() + 1,
  globalSetup: 'storage/cluster.ts',
  sequence: { sequencer: SlowFirst },
};

export default defineConfig({
  test: {
    root,
    ...run,
    projects: [
      {
        test: {
          ...withCheapCryptography,
          ...together,
          name: 'together',
          exclude: [...REAL_CRYPTOGRAPHY, LONG, ...withMocks],
        },
      },
      {
        test: { ...withCheapCryptography, name: 'alone', include: withMocks, exclude: [LONG] },
      },
      {
        test: {
          ...test,
          ...together,
          name: 'cryptography',
          include: REAL_CRYPTOGRAPHY,
          exclude: [LONG],
        },
      },
    ],
  },
});
