import { existsSync, type Stats } from 'node:fs';
import { access, constants, lstat, mkdtemp, readFile, rm, stat, statfs } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { daemonFiles } from '../../../daemon/daemon-files.ts';
import { writeAtomically } from '../../base/atomic-file.ts';
import { isLocked } from '../../base/file-lock.ts';
import { checkOwner, checkPlace } from '../../base/private-file.ts';
import { ServiceError } from '../../base/errors.ts';
import { isSystemError } from '../../base/system-errors.ts';
import { formatCount, formatCountOf } from '../../base/format.ts';
import { backupOf } from '../../gate/license.ts';
import { watchFiles } from '../../gate/watch.ts';
import { nearestExisting } from '../../base/make-directory.ts';
import { inspectDatasets } from '../../market/catalogue.ts';
import type { Check } from '../run-checks.ts';
import type { Facts } from '../machine-facts.ts';

const runtime: Check<Facts> = {
  code: 'runtime',
  async run() {
    const { version, platform, arch } = process;
    const evidence = { node: version, platform, arch };
    try {
      // A native module, which fails after a change of Node or the system.
      const { default: Database } = await import('better-sqlite3');
      new Database(':memory:').close();
      return { status: 'ok', summary: `Node ${version} on ${platform} ${arch}`, evidence };
    } catch (error) {
      return {
        status: 'fail',
        summary: `SQLite does not load in Node ${version}: ${error instanceof Error ? error.message : String(error)}`,
        evidence,
        remedy: 'Install service-local again with this Node.',
      };
    }
  },
};

interface WrongMode {
  readonly path: string;
  readonly fault: 'others may write to' | 'others may read' | 'this user may not open';
  readonly mode: number;
}

/** Lists this user's files whose permissions are wrong. */
export async function wrongModes({
  home,
  files,
}: Pick<Facts, 'home' | 'files'>): Promise<readonly WrongMode[]> {
  const { lease, keyset, root, key, nextKey, formerKey, state } = files;
  const own = daemonFiles(home);
  const locks = [files.lock, own.lock];
  const ofDaemon = [state, own.note, own.log, own.olderLog];
  // Signed files contain no secrets, so that all users may read them.
  const signed = [lease, backupOf(lease), keyset, root];
  const others = [...signed, key, nextKey, formerKey, ...ofDaemon];
  const wrong: WrongMode[] = [];
  let isInUse = false;
  // Files outside of the home directory are signed, and other programs manage them.
  for (const path of [...locks, ...others].filter((one) => dirname(one) === home)) {
    const stats = await lstat(path).catch(ignoreSystem);
    if (!stats?.isFile() || !isOurs(stats)) continue;
    isInUse = true;
    // Only locks are opened for writing; other files are replaced.
    const isShut = locks.includes(path) && (stats.mode & 0o600) !== 0o600;
    if (isShut) wrong.push({ path, fault: 'this user may not open', mode: 0o600 });
    else if ((stats.mode & 0o022) !== 0)
      wrong.push({ path, fault: 'others may write to', mode: 0o600 });
    else if ((stats.mode & 0o077) !== 0 && !signed.includes(path))
      wrong.push({ path, fault: 'others may read', mode: 0o600 });
  }
  const stats = await stat(home).catch(ignoreSystem);
  if (stats && isOurs(stats)) {
    if ((stats.mode & 0o022) !== 0) {
      wrong.unshift({ path: home, fault: 'others may write to', mode: 0o700 });
    } else if (isInUse && (stats.mode & 0o077) !== 0) {
      wrong.unshift({ path: home, fault: 'others may read', mode: 0o700 });
    }
  }
  return wrong;
}

const home: Check<Facts> = {
  code: 'home',
  async run(facts) {
    const { home: path, files } = facts;
    const stats = await stat(path).catch((error: unknown) => {
      if (isSystemError(error, 'ENOENT')) return undefined;
      throw cannotRead(path, error);
    });
    if (stats === undefined) {
      return { status: 'ok', summary: `${path} does not exist yet; it is created when needed` };
    }
    const evidence = { path, mode: (stats.mode & 0o777).toString(8), uid: stats.uid };
    if (!stats.isDirectory()) {
      const remedy = 'Move it away, or set SERVICE_LOCAL_HOME to another directory.';
      return { status: 'fail', summary: `${path} is not a directory`, evidence, remedy };
    }
    checkOwner(path, stats);
    await access(path, constants.R_OK | constants.X_OK).catch((error: unknown) => {
      throw cannotRead(path, error);
    });
    const { lock, note, log, olderLog } = daemonFiles(path);
    // The daemon writes these files. Without a device key, license files may be symbolic links.
    const ofLicense = existsSync(files.key)
      ? [files.lease, backupOf(files.lease), files.keyset, files.root]
      : [];
    for (const file of [...ofLicense, files.state, files.lock, lock, note]) await checkPlace(file);
    // The check device_key reports the permissions of keys.
    const wrong = (await wrongModes(facts)).filter(
      (one) => one.path !== files.key && one.path !== files.nextKey,
    );
    if (wrong.length > 0) {
      const isUnusable = (one: WrongMode): boolean =>
        one.fault === 'this user may not open' ||
        (one.path === path && one.fault === 'others may write to');
      const worst =
        wrong.find(isUnusable) ?? wrong.find((one) => one.fault !== 'others may read') ?? wrong[0]!;
      const { fault, path: first } = worst;
      return {
        // The checks of each file report whether other users may have changed it.
        status: isUnusable(worst) ? 'fail' : 'warn',
        summary: `${fault} ${first}${wrong.length > 1 ? ` and ${wrong.length - 1} more` : ''}`,
        evidence: { ...evidence, wrong_modes: wrong.map((one) => one.path) },
        remedy: 'Run `service-local doctor --fix` to correct the permissions.',
      };
    }
    // Throws if the lock cannot be used. The check daemon covers the lock of the daemon.
    isLocked(files.lock);
    for (const file of [olderLog, log]) {
      const fault = await checkPlace(file).catch((error: unknown) => error);
      if (!(fault instanceof ServiceError)) continue;
      const { message, remedy = 'Move the file away.', reason } = fault;
      const summary = `the daemon cannot write its log: ${message}`;
      return { status: 'warn', summary, evidence: { ...evidence, reason }, remedy };
    }
    return { status: 'ok', summary: path, evidence };
  },
};

/** True on systems without user ids, where permissions are not checked. */
function isOurs({ uid }: Stats): boolean {
  return process.getuid === undefined || uid === process.getuid();
}

function ignoreSystem(error: unknown): undefined {
  if (!isSystemError(error)) throw error;
}

function cannotRead(path: string, error: unknown): unknown {
  if (!isSystemError(error)) return error;
  return new ServiceError('invalid_data', `${path} cannot be read: ${error.message}`, {
    reason: 'unreadable',
    remedy: 'Check the permissions of the directory and of those above it.',
    cause: error,
  });
}

const MIB = 1024 * 1024;
/** Leases need only kilobytes, but a disk with less free space will soon be full. */
const LITTLE_BYTES = 100 * MIB;

const disk: Check<Facts> = {
  code: 'disk',
  blames: ['home'],
  async run({ home: path, files }) {
    const existing = nearestExisting(path);
    const { bavail, bsize, files: inodes, ffree } = await statfs(existing);
    const free = bavail * bsize;
    const evidence = { path: existing, free_bytes: free, free_inodes: inodes > 0 ? ffree : null };
    const isDevice = existsSync(files.key);
    try {
      // A missing home directory is not created for this check.
      if (existing !== path) await access(existing, constants.W_OK);
      else {
        const places = isDevice ? [path, dirname(files.lease), dirname(files.keyset)] : [path];
        for (const place of new Set(places)) await writeTwice(place);
      }
    } catch (error) {
      if (!isSystemError(error)) throw error;
      const status = isDevice ? 'fail' : 'warn';
      const remedy = 'Check that this user can write there and that the disk has free space.';
      return { status, summary: `files cannot be written: ${error.message}`, evidence, remedy };
    }
    const room = `${formatCount(free / MIB)} MiB free at ${existing}`;
    return free < LITTLE_BYTES
      ? { status: 'warn', summary: `only ${room}`, evidence, remedy: 'Free disk space.' }
      : { status: 'ok', summary: `${room}; files can be replaced atomically`, evidence };
  },
};

/** @throws the system's error, or a ServiceError if the file differs from what was written. */
async function writeTwice(place: string): Promise<void> {
  await inNewDirectory(place, async (directory) => {
    const file = join(directory, 'file');
    for (const text of ['first', 'second']) {
      await writeAtomically(file, [text]);
      if ((await readFile(file, 'utf8')) === text) continue;
      throw new ServiceError('output_not_writable', `${place} does not keep what is written`, {
        remedy: 'Check the disk for errors.',
      });
    }
  });
}

async function inNewDirectory<T>(
  place: string,
  work: (directory: string) => Promise<T>,
): Promise<T> {
  const directory = await mkdtemp(join(place, SELF_TEST));
  try {
    return await work(directory);
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Prefix of the directories of tests, which a killed process leaves behind. */
export const SELF_TEST = '.self-test-';

/** Far longer than a notification takes on a busy machine. */
const SEEN_WITHIN_MS = 3000;

const watcher: Check<Facts> = {
  code: 'watcher',
  needs: ['disk'],
  async run({ home: path }) {
    if (!existsSync(path))
      return { status: 'skip', summary: 'the home directory does not exist yet' };
    const began = performance.now();
    const fault = await inNewDirectory(path, async (directory) => {
      const file = join(directory, 'file');
      const { promise, resolve } = Promise.withResolvers<string | undefined>();
      const late = setTimeout(() => resolve('the system reports no change'), SEEN_WITHIN_MS);
      const watching = await watchFiles([file], () => resolve(undefined), resolve);
      try {
        await writeAtomically(file, ['new']);
        return await promise;
      } finally {
        clearTimeout(late);
        await watching.close();
      }
    });
    const ms = Math.round(performance.now() - began);
    if (fault === undefined) {
      return {
        status: 'ok',
        summary: `a file change was noticed within ${ms} ms`,
        evidence: { ms },
      };
    }
    return {
      status: 'warn',
      summary: `changes of license files are noticed only after up to 30 seconds: ${fault}`,
      evidence: { fault },
      remedy: 'On Linux, raise fs.inotify.max_user_watches and fs.inotify.max_user_instances.',
    };
  },
};

const catalogue: Check<Facts> = {
  code: 'catalogue',
  blames: ['home'],
  async run({ catalogueDir: path }) {
    const { names, damaged } = await inspectDatasets(path);
    const evidence = { path, datasets: names.length, damaged };
    if (damaged.length > 0) {
      return {
        status: 'fail',
        summary: `${formatCountOf(damaged.length, 'damaged dataset')} in ${path}: ${damaged.join(', ')}`,
        evidence,
        remedy: 'Import them again with `service-local data import FILE --replace`.',
      };
    }
    const summary =
      names.length === 0
        ? `${path} is empty`
        : `${formatCountOf(names.length, 'dataset')} in ${path}`;
    return { status: 'ok', summary, evidence };
  },
};

export const MACHINE_CHECKS = [runtime, home, disk, watcher, catalogue] as const;
