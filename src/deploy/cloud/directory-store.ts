import { hash } from 'node:crypto';
import { lstat, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writePrivateFile } from '../../base/private-file.ts';
import { ServiceError } from '../../base/errors.ts';
import { isSystemError } from '../../base/system-errors.ts';
import type { SecretStore, SecretVersion } from './secret-store.ts';

/**
 * Writes each secret to a file that only the current user can read, for trials and for copying to
 * another machine.
 */
export function directoryStore(root: string): SecretStore {
  const current = (name: string): Promise<SecretVersion | undefined> => read(join(root, name));
  return {
    place: `the directory ${root}`,
    async put(name, value) {
      const path = join(root, name);
      const there = await read(path);
      if (there?.value !== value) await writePrivateFile(path, value);
      return versionOf(value);
    },
    current,
    previous: async () => undefined,
    close() {},
  };
}

async function read(path: string): Promise<SecretVersion | undefined> {
  try {
    const stats = await lstat(path);
    if (!stats.isFile()) {
      // A link can point outside the store, and reading from a pipe can block forever.
      throw new ServiceError('invalid_data', `${path} is not a regular file`, {
        remedy: 'Move or delete it, then run the command again.',
      });
    }
    const value = await readFile(path, 'utf8');
    return { value, version_id: versionOf(value), created_at: stats.mtimeMs };
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    if (!isSystemError(error)) throw error;
    throw new ServiceError('not_allowed', `cannot read ${path} (${error.code})`, {
      remedy: 'Check that the path is correct and that you may read the file.',
    });
  }
}

function versionOf(value: string): string {
  return hash('sha256', value);
}
