import { hash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { writePrivateFile } from '../client/private-file.ts';
import { isSystemError, ServiceError } from '../errors.ts';
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
    const value = await readFile(path, 'utf8');
    const { mtimeMs } = await stat(path);
    return { value, version_id: versionOf(value), created_at: mtimeMs };
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    if (!isSystemError(error)) throw error;
    const code = isSystemError(error, 'EACCES', 'EPERM') ? 'not_allowed' : 'cloud_unavailable';
    throw new ServiceError(code, `cannot read ${path} (${error.code})`, {
      remedy: 'Check the path and its permissions.',
    });
  }
}

function versionOf(value: string): string {
  return hash('sha256', value);
}
