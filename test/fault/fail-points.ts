/**
 * Makes the calls of `node:fs/promises` that change files fail, in code that knows nothing of it: in
 * this process with `failAt`; in another with `node --import` of this file and a `FailPoint` as JSON
 * in the variable `FAIL_POINT`.
 */
import { linkSync, mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import fs, { type FileHandle } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { basename, dirname, join } from 'node:path';

export type Fault =
  /** SIGKILL to this process. */
  | 'kill'
  /** Power cut. Of what was written, only what had been synced is there. */
  | 'lost_contents'
  /** The same, and all names are as they were when the directory was last synced. */
  | 'lost_names'
  /** It says that all went well. */
  | 'lie'
  | SystemError
  /** The same for this call and all that follow. */
  | `${SystemError} for ever`;

export type SystemError = 'ENOSPC' | 'EIO' | 'EROFS';

export interface FailPoint {
  /** Only calls for this directory, and for files that are in it, count. */
  readonly directory: string;
  /** Which call, from 1. */
  readonly at: number;
  readonly fault: Fault;
}

export interface Outcome {
  /** Each with the name of its file, in order. */
  readonly calls: readonly string[];
  readonly end: 'done' | 'power_cut' | { readonly error: unknown };
}

export async function failAt(point: FailPoint, work: () => Promise<unknown>): Promise<Outcome> {
  const run = arm(point);
  const done = work().then(
    () => 'done' as const,
    (error: unknown) => ({ error }),
  );
  try {
    const end = await Promise.race([done, run.cut.promise]);
    if (run.calls.length < point.at) run.disk.cutPower(point.fault);
    return { calls: run.calls, end };
  } finally {
    armed = undefined;
    for (const close of run.open) await close();
    run.disk.remove();
  }
}

interface Run extends FailPoint {
  readonly calls: string[];
  readonly disk: Disk;
  readonly cut: PromiseWithResolvers<'power_cut'>;
  readonly open: Set<() => Promise<void>>;
}

let armed: Run | undefined;

function arm(point: FailPoint): Run {
  armed = {
    ...point,
    calls: [],
    disk: createDisk(point.directory),
    cut: Promise.withResolvers(),
    open: new Set(),
  };
  return armed;
}

const never = new Promise<never>(() => undefined);

async function call<T>(
  name: string,
  path: string,
  act: () => Promise<T>,
  half?: () => Promise<T>,
): Promise<T> {
  const run = armed;
  if (run === undefined || ![path, dirname(path)].includes(run.directory)) return act();
  run.calls.push(`${name} ${basename(path).replace(/\d+-\d+-[0-9a-f]{8}\.[0-9a-f]{16}/, '*')}`);
  const { at, calls, fault } = run;
  const [code, forEver] = fault.split(' ', 2);
  const isHit = calls.length === at || (calls.length > at && forEver !== undefined);
  if (!isHit) return act();
  const written = await half?.();
  if (fault === 'kill') {
    process.kill(process.pid, 'SIGKILL');
    return never;
  }
  if (fault === 'lost_contents' || fault === 'lost_names') {
    run.disk.cutPower(fault);
    run.cut.resolve('power_cut');
    return never;
  }
  if (fault === 'lie') return written ?? act();
  if (name === 'close') await act();
  const error = new Error(`${code}: made up, ${name} '${path}'`);
  throw Object.assign(error, { code, syscall: name, path });
}

const { open, rename, link, rm } = fs;

type Open = (path: string, flags: string | number, mode?: number) => Promise<FileHandle>;

const watched: Open = async (path, flags, mode) => {
  if (typeof flags === 'number') return open(path, flags, mode);
  const file = await call('open', path, () => open(path, flags, mode));
  const run = armed;
  if (run === undefined) return file;
  const writeFile = file.writeFile.bind(file);
  const sync = file.sync.bind(file);
  const close = file.close.bind(file);
  run.open.add(close);
  if (flags === 'wx') run.disk.opened(file, path);
  return Object.assign(file, {
    writeFile: (data: string | Uint8Array) =>
      call(
        'write',
        path,
        () => writeFile(data),
        () => writeFile(data.slice(0, data.length / 2)),
      ),
    sync: () =>
      call('sync', path, async () => {
        await sync();
        run.disk.synced(file, path);
      }),
    close: () =>
      call('close', path, () => {
        run.open.delete(close);
        return close();
      }),
  });
};

Object.assign(fs, {
  open: watched,
  rename: (from: string, to: string) => call('rename', to, () => rename(from, to)),
  link: (from: string, to: string) => call('link', to, () => link(from, to)),
  rm: (path: string, options?: { force?: boolean }) => call('rm', path, () => rm(path, options)),
});
syncBuiltinESMExports();

interface Disk {
  opened(file: FileHandle, path: string): void;
  synced(file: FileHandle, path: string): void;
  cutPower(fault: Fault): void;
  remove(): void;
}

/** Everything that is there now is on the disk. */
function createDisk(directory: string): Disk {
  // Second names of the files, as they have to be found whatever becomes of the first.
  const hidden = mkdtempSync(`${directory}-disk-`);
  const names = join(hidden, 'names');
  const unsynced = new Map<FileHandle, string>();
  const empty = (path: string): void => {
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path, { mode: 0o700 });
  };
  const linkAll = (from: string, to: string): void => {
    empty(to);
    for (const name of readdirSync(from)) linkSync(join(from, name), join(to, name));
  };
  linkAll(directory, names);
  return {
    opened(file, path) {
      const second = join(hidden, String(readdirSync(hidden).length));
      linkSync(path, second);
      unsynced.set(file, second);
    },
    synced(file, path) {
      if (path === directory) linkAll(directory, names);
      else unsynced.delete(file);
    },
    cutPower(fault) {
      if (!fault.startsWith('lost_')) return;
      for (const second of unsynced.values()) truncateSync(second);
      if (fault === 'lost_names') linkAll(names, directory);
    },
    remove: () => rmSync(hidden, { recursive: true }),
  };
}

if (process.env['FAIL_POINT'] !== undefined) {
  arm(JSON.parse(process.env['FAIL_POINT']) as FailPoint);
}
