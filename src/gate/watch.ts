import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { watch, type FSWatcher } from 'chokidar';

/** Kubernetes updates mounted secrets by changing this link, through which the files are linked. */
const SWAPPED_DIRECTORY = '..data';

/** Limits the wait on very slow file systems. */
const READY_WITHIN_MS = 2_000;

/**
 * Watches the directories of files, because a watch on the file itself ends when the file is replaced.
 *
 * @param paths absolute; the files need not exist.
 * @param onEvent called when one of the files may have changed.
 * @param onError called when changes may go unnoticed.
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
    // With `atomic`, chokidar would report renamed files only after a delay.
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

/** Resolves links, because chokidar would watch a link to a directory as a link. */
function directoryOf(path: string): string {
  const directory = dirname(path);
  return existsSync(directory) ? realpathSync(directory) : directory;
}
