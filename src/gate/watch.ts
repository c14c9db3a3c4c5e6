import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { watch, type FSWatcher } from 'chokidar';

/** Secret stores of Kubernetes put this link to another directory; the files are links through it. */
const SWAPPED_DIRECTORY = '..data';

/** Nobody waits any longer for a file system that hardly answers. */
const READY_WITHIN_MS = 2_000;

/**
 * Watches the directories of files, because a watch on a file itself sees no more of it once another
 * file has taken its place.
 *
 * @param paths absolute; nothing needs to be there yet.
 * @param onEvent called when one of the files may be another.
 * @param onError called when changes may not be noticed.
 */
export async function watchFiles(
  paths: readonly string[],
  onEvent: () => void,
  onError: (message: string) => void,
): Promise<Pick<FSWatcher, 'close'>> {
  const directories = new Set(paths.map((path) => directoryOf(path)));
  const names = new Set([...paths.map((path) => basename(path)), SWAPPED_DIRECTORY]);
  const watcher = watch([...directories], {
    depth: 0,
    ignored: (path) => !directories.has(path) && !names.has(basename(path)),
    ignoreInitial: true,
    followSymlinks: false,
    // What is put into place by renaming is to be seen at once, not after a while.
    atomic: false,
    persistent: false,
  });
  watcher.on('all', onEvent);
  watcher.on('error', (error) => onError(error instanceof Error ? error.message : String(error)));
  const { promise, resolve } = Promise.withResolvers<void>();
  watcher.once('ready', resolve).once('error', () => resolve());
  const late = setTimeout(resolve, READY_WITHIN_MS);
  await promise;
  clearTimeout(late);
  return watcher;
}

/** Where it really is: a link to a directory would be watched as a link. */
function directoryOf(path: string): string {
  const directory = dirname(path);
  return existsSync(directory) ? realpathSync(directory) : directory;
}
