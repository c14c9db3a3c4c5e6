import { hash } from 'node:crypto';
import { lstat, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writePrivateFile } from '../../client/private-file.ts';
import { isSystemError, ServiceError } from '../../base/errors.ts';
import type { SecretStore, SecretVersion } from './secret-store.ts';

/** A file for each secret, which only this user can read: to try it, or to carry it elsewhere. */
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
      // A link leads to what is no secret of this store, a pipe to waiting for ever.
      throw new ServiceError('invalid_data', `${path} is no file`, {
        remedy: 'Move away what is there.',
      });
    }
    const value = await readFile(path, 'utf8');
    return { value, version_id: versionOf(value), created_at: stats.mtimeMs };
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    if (!isSystemError(error)) throw error;
    throw new ServiceError('not_allowed', `cannot read ${path} (${error.code})`, {
      remedy: 'Check the path and its permissions.',
    });
  }
}

function versionOf(value: string): string {
  return hash('sha256', value);
}
