import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const MOUNTS = '/proc/self/mountinfo';

/**
 * Finds out why the files of a directory would vanish with the container of this process, which is known
 * only on Linux.
 *
 * @param directory may be missing.
 * @param mounts in the format of proc_pid_mountinfo(5).
 * @returns undefined if no reason is known.
 */
export function whyEphemeral(
  directory: string,
  env: NodeJS.ProcessEnv,
  mounts = existsSync(MOUNTS) ? readFileSync(MOUNTS, 'utf8') : '',
): string | undefined {
  const mount = findMount(resolve(directory), mounts);
  if (mount === undefined) return undefined;
  const { root, point, type } = mount;
  // The kubelet names the directories of volumes after their kind.
  if (root.includes('/kubernetes.io~empty-dir/')) return `${point} is an emptyDir of its pod`;
  const isContainers = env['KUBERNETES_SERVICE_HOST'] !== undefined;
  if (isContainers && type === 'overlay') return `${point} belongs to the container`;
  if (isContainers && type === 'tmpfs') return `${point} is in memory`;
  return undefined;
}

interface Mount {
  /** Directory of the file system that is mounted. */
  readonly root: string;
  readonly point: string;
  readonly type: string;
}

/** Finds the mount that holds a path. */
function findMount(path: string, mounts: string): Mount | undefined {
  let found: Mount | undefined;
  for (const line of mounts.split('\n')) {
    const [before, after] = line.split(' - ');
    const [, , , root, point] = before!.split(' ').map(unescapeName);
    const type = after?.split(' ')[0];
    if (root === undefined || point === undefined || type === undefined) continue;
    const holds = point === '/' || path === point || path.startsWith(`${point}/`);
    // A later mount covers an earlier one at the same point.
    if (holds && point.length >= (found?.point.length ?? 0)) found = { root, point, type };
  }
  return found;
}

/** Spaces and other special characters are octal in the file. */
function unescapeName(name: string): string {
  return name.replaceAll(/\\([0-7]{3})/g, (_, octal: string) =>
    String.fromCharCode(Number.parseInt(octal, 8)),
  );
}
