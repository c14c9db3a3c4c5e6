/**
 * What `npm test` does: the checks of the sources one after another, beside the tests, which leave a
 * processor idle at times. What the checks found is told after what the tests have to tell.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants, setPriority } from 'node:os';
import { text } from 'node:stream/consumers';

const CHECKS = ['check:types', 'check:lint', 'check:imports', 'check:dead'];

/** @returns what each of them found, where that is something. */
async function check(): Promise<readonly string[]> {
  const found: string[] = [];
  for (const script of CHECKS) {
    const child = spawn(process.execPath, ['--run', script], { stdio: ['ignore', 'pipe', 'pipe'] });
    // The tests wait for much that is to come within a time.
    setPriority(child.pid!, constants.priority.PRIORITY_BELOW_NORMAL);
    const [out, err, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'close'),
    ]);
    if (code !== 0) found.push(`${script} found:\n${out}${err}`);
  }
  return found;
}

const tests = spawn(process.execPath, ['--run', 'check:tests'], { stdio: 'inherit' });
const [found, [code]] = await Promise.all([check(), once(tests, 'close')]);
console.log(found.length > 0 ? found.join('\n') : 'The checks of the sources found nothing.');
process.exitCode = found.length === 0 && code === 0 ? 0 : 1;
