import { execFileSync } from 'node:child_process';
import { delimiter, join } from 'node:path';

/** Path of a Node on this machine that is too old for the CLI, if there is one. */
export const oldNode = [
  ...(process.env['PATH'] ?? '').split(delimiter),
  '/usr/bin',
  '/usr/local/bin',
]
  .map((directory) => join(directory, 'node'))
  .find(isTooOld);

function isTooOld(node: string): boolean {
  try {
    const version = execFileSync(node, ['-p', 'process.versions.node'], { encoding: 'utf8' });
    const [major = 0, minor = 0] = version.split('.').map(Number);
    return major >= 18 && (major < 24 || (major === 24 && minor < 15));
  } catch {
    return false;
  }
}
