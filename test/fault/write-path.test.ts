import { execFile } from 'node:child_process';
import {
  mkdtempSync,
  readdirSync,
  renameSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { deviceKeyAt } from '../../src/client/device-key.ts';
import { quarantine, storeKeyset, storeLease } from '../../src/client/lease-store.ts';
import { backupOf, readLicense } from '../../src/gate/license.ts';
import { isAtLength } from '../length.ts';
import { failAt, type Fault, type Outcome } from './fail-points.ts';
import {
  heldNumber,
  keysetText,
  leaseText,
  NOW,
  numberedFiles,
  putStored,
  store,
} from './numbered.ts';

let root: string;
let home: string;
beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), 'service-local-write-path-'));
});
afterAll(() => rmSync(root, { recursive: true }));
beforeEach(() => {
  home = newHome();
});

function newHome(): string {
  const directory = mkdtempSync(join(root, 'home-'));
  putStored(directory, 1);
  return directory;
}

const emptyHome = (): string => mkdtempSync(join(root, 'home-'));

const OLD = [keysetText(1), leaseText(1), leaseText(1)];
const NEW = [keysetText(2), leaseText(2), leaseText(2)];
const NAMES = ['license_lease.json', 'license_lease.json.bak', 'license_public_key.json'];
const WRITE = ['open', 'write', 'sync', 'close', 'rename'];
const SYNC_NAME = ['open', 'sync', 'close'];
const CALLS_OF_ONE = WRITE.length + SYNC_NAME.length;
const CALLS = NAMES.length * CALLS_OF_ONE;

/** Texts of keyset, lease and backup. */
function texts(directory: string): string[] {
  const { keyset, lease } = numberedFiles(directory);
  return [keyset, lease, backupOf(lease)].map((path) => readFileSync(path, 'utf8'));
}

function halfDone(directory: string): string[] {
  const isWhole = (text: string, i: number): boolean => text === OLD[i] || text === NEW[i];
  return texts(directory).filter((text, i) => !isWhole(text, i));
}

/** The next start, when the process before has ended: nothing is left of what went before. */
async function storeAgain(directory: string): Promise<void> {
  for (const name of readdirSync(directory)) {
    const ended = name.replace(/\.(\d+)-\d+-/, '.$1-1-');
    renameSync(join(directory, name), join(directory, ended));
  }
  await store(directory, 2);
}

/** All ends of the work with each of the faults at each of its calls. */
async function atEachCall(
  faults: readonly Fault[],
  prepare: () => string,
  work: (directory: string) => Promise<unknown>,
  check: (directory: string, outcome: Outcome, fault: Fault) => Promise<void>,
): Promise<void> {
  for (const fault of faults) {
    for (let at = 1, reached = true; reached; at += 1) {
      const directory = prepare();
      const outcome = await failAt({ directory, at, fault }, () => work(directory));
      reached = outcome.calls.length >= at;
      await check(directory, outcome, fault);
    }
  }
}

test('each file is on disk before it is renamed, the keyset before the lease', async () => {
  const { calls, end } = await failAt({ directory: home, at: Infinity, fault: 'kill' }, () =>
    store(home, 2),
  );
  expect(end).toBe('done');
  const file = (name: string): string[] => [
    ...WRITE.slice(0, -1).map((call) => `${call} ${name}.*.tmp`),
    `rename ${name}`,
    ...SYNC_NAME.map((call) => expect.stringMatching(`^${call} home-`) as string),
  ];
  const [lease, backup, keyset] = NAMES as [string, string, string];
  expect(calls).toEqual([...file(keyset), ...file(backup), ...file(lease)]);
  expect(texts(home)).toEqual(NEW);
});

test('a created directory is on disk too', async () => {
  const directory = emptyHome();
  const work = (): Promise<void> => store(join(directory, 'a', 'b'), 2);
  const { calls } = await failAt({ directory, at: Infinity, fault: 'kill' }, work);
  const name = (call: string): unknown => expect.stringMatching(`^${call} home-`);
  expect(calls).toEqual([...SYNC_NAME.map(name), 'open a', 'sync a', 'close a']);
});

test('a kill at any moment leaves each file old or new', async () => {
  const program = join(import.meta.dirname, 'numbered.ts');
  const failPoints = join(import.meta.dirname, 'fail-points.ts');
  /** @returns the signal that ended it. */
  const run = async (directory: string, at: number): Promise<unknown> => {
    const env = {
      ...process.env,
      FAIL_POINT: JSON.stringify({ directory, at, fault: 'kill' }),
    };
    const args = ['--import', failPoints, program, directory, '2', '2'];
    try {
      await promisify(execFile)(process.execPath, args, { env });
      return undefined;
    } catch (error) {
      return (error as { signal?: string }).signal ?? error;
    }
  };
  expect(await run(home, CALLS + 1)).toBeUndefined();
  expect(texts(home)).toEqual(NEW);
  const kill = async (at: number): Promise<void> => {
    const directory = newHome();
    expect(await run(directory, at)).toBe('SIGKILL');
    expect(halfDone(directory)).toEqual([]);
    const { leases, refused } = await readLicense(numberedFiles(directory), NOW);
    expect(leases[0]).toBeDefined();
    expect(refused.filter(({ path }) => !path.endsWith('.tmp'))).toEqual([]);
    await storeAgain(directory);
    expect(texts(directory)).toEqual(NEW);
    expect(readdirSync(directory)).toEqual(NAMES);
  };
  // All files take the same calls: some are enough, with another file each time.
  const [kills, step] = isAtLength ? [CALLS, 1] : [2, CALLS_OF_ONE + 1];
  for (let i = 0; i < kills; i += 2) {
    await Promise.all([i, i + 1].map((n) => kill(((n * step) % CALLS) + 1)));
  }
});

test.runIf(isAtLength)('a power failure at any moment leaves each file old or new', async () => {
  const seen = new Set<string>();
  await atEachCall(
    ['lost_contents', 'lost_names'],
    newHome,
    (directory) => store(directory, 2),
    async (directory, { end }) => {
      expect(halfDone(directory)).toEqual([]);
      const held = texts(directory);
      seen.add(held.map((text, i) => (text === NEW[i] ? 'new' : 'old')).join());
      expect(held).toEqual(end === 'done' ? NEW : expect.anything());
      await storeAgain(directory);
      expect(texts(directory)).toEqual(NEW);
      expect(readdirSync(directory)).toEqual(NAMES);
    },
  );
  expect([...seen].sort()).toEqual(['new,new,new', 'new,old,new', 'new,old,old', 'old,old,old']);
});

const REMEDIES: Readonly<Record<string, string>> = {
  ENOSPC: 'The disk is full: free space, or write elsewhere.',
  EROFS: 'The file system is read-only: write elsewhere.',
  EIO: 'Make sure that this user may write there.',
};

test('every system error is reported and loses no file', async () => {
  const ends: unknown[] = [];
  const more = ['EROFS for ever', 'EIO', 'ENOSPC for ever'] as const;
  const faults = ['ENOSPC', ...(isAtLength ? more : [])] as const;
  await atEachCall(
    faults,
    newHome,
    (directory) => store(directory, 2),
    async (directory, { end }, fault) => {
      expect(halfDone(directory)).toEqual([]);
      if (!fault.endsWith('for ever')) expect(readdirSync(directory)).toEqual(NAMES);
      if (end === 'done') {
        expect(texts(directory)).toEqual(NEW);
      } else {
        const message = expect.stringContaining(fault.split(' ')[0]!) as string;
        const remedy = REMEDIES[fault.split(' ')[0]!];
        expect(end).toMatchObject({ error: { code: 'output_not_writable', message, remedy } });
        ends.push(end);
      }
      await storeAgain(directory);
      expect(texts(directory)).toEqual(NEW);
      expect(readdirSync(directory)).toEqual(NAMES);
    },
  );
  expect(ends).toHaveLength(faults.length * CALLS);
});

test('a disk that loses half of a write is detected before the file is replaced', async () => {
  const errors: unknown[] = [];
  await atEachCall(
    ['lie'],
    newHome,
    (directory) => store(directory, 2),
    async (directory, { end }) => {
      expect(halfDone(directory)).toEqual([]);
      expect(readdirSync(directory)).toEqual(NAMES);
      if (end !== 'done') errors.push(end);
    },
  );
  const message = expect.stringMatching(
    'was not changed: the new content could not be read back',
  ) as string;
  const told = expect.objectContaining({ code: 'output_not_writable', message }) as unknown;
  expect(errors).toEqual([{ error: told }, { error: told }, { error: told }]);
});

test('the first lease of a machine is stored completely or not at all', async () => {
  await atEachCall(
    ['lost_contents', 'lost_names', 'ENOSPC for ever'],
    emptyHome,
    (directory) => store(directory, 2),
    async (directory, { end }) => {
      for (const name of readdirSync(directory).filter((one) => NAMES.includes(one))) {
        expect(NEW).toContain(readFileSync(join(directory, name), 'utf8'));
      }
      if (end === 'done') expect(texts(directory)).toEqual(NEW);
    },
  );
});

test('a device key is stored completely or not at all, and durably once it is returned', async () => {
  const told = new Map<string, string>();
  await atEachCall(
    ['lost_contents', 'lost_names', 'EIO', 'EROFS for ever', 'lie'],
    emptyHome,
    async (directory) => {
      told.set(directory, (await deviceKeyAt(join(directory, 'device.key'))).device_id);
    },
    async (directory) => {
      const { device_id } = await deviceKeyAt(join(directory, 'device.key'));
      expect(told.get(directory) ?? device_id).toBe(device_id);
    },
  );
  expect(told.size).toBeGreaterThan(0);
});

test.runIf(isAtLength)(
  'the only complete lease, left by a killed process, stays until another one is stored',
  async () => {
    const torn = leaseText(1).slice(0, 300);
    await atEachCall(
      ['lost_contents', 'lost_names'],
      () => {
        const directory = newHome();
        const { lease } = numberedFiles(directory);
        writeFileSync(lease, torn);
        writeFileSync(backupOf(lease), '');
        const left = `${lease}.0123456789abcdef.tmp`;
        writeFileSync(left, leaseText(1));
        utimesSync(left, 0, 0);
        return directory;
      },
      async (directory) => {
        const { keyset, lease } = numberedFiles(directory);
        await quarantine(lease, NOW);
        await storeKeyset(keyset, keysetText(1));
        await storeLease(lease, leaseText(1));
      },
      async (directory, { end }) => {
        expect(await heldNumber(directory)).toBe(1);
        const kept = readdirSync(directory).find((name) => name.includes('quarantined'));
        expect(kept && readFileSync(join(directory, kept), 'utf8')).toBeOneOf([torn, undefined]);
        const { lease } = numberedFiles(directory);
        expect([torn, OLD[1]]).toContain(readFileSync(lease, 'utf8'));
        if (end === 'done') expect(texts(directory)).toEqual(OLD);
      },
    );
  },
);
