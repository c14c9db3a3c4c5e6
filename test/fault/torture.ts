import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { seededRandom } from '../../src/engine/random.ts';
import { backupOf } from '../../src/gate/license.ts';
import { heldNumber, keysetText, leaseText, numberedFiles, numberOf } from './numbered.ts';

export interface LeaseTorturePlan {
  readonly rounds: number;
  readonly seed: number;
}

export interface LeaseTortureReport {
  /** Leases that a process said it had stored. */
  readonly stored: number;
  /** Times that somebody else looked at the files meanwhile. */
  readonly reads: number;
  readonly untold: number;
  /** Kills that left a file that was being written. */
  readonly abandoned: number;
}

const LONGEST_LIFE_MS = 40;

const PROGRAM = join(import.meta.dirname, 'numbered.ts');

/**
 * Kills processes that store one license after the other, and looks at what is there, before and
 * after.
 */
export async function tortureLeaseFile(
  { rounds, seed }: LeaseTorturePlan,
  onRound?: (round: number) => void,
): Promise<LeaseTortureReport> {
  const random = seededRandom(seed);
  const root = mkdtempSync(join(tmpdir(), 'service-local-lease-torture-'));
  const home = join(root, 'home');
  const env = { ...process.env, NODE_COMPILE_CACHE: join(root, 'compiled') };
  const report = { stored: 0, reads: 0, untold: 0, abandoned: 0 };
  try {
    await promisify(execFile)(process.execPath, [PROGRAM, home, '0', '0'], { env });
    for (let round = 1, last = 0; round <= rounds; round += 1) {
      const before = abandonedIn(home);
      const args = [PROGRAM, home, String(last + 1), 'Infinity'];
      const storing = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
      let told = '';
      storing.stdout.setEncoding('utf8').on('data', (text: string) => (told += text));
      const closed = once(storing, 'close');
      await Promise.race([once(storing.stdout, 'data'), closed]);
      const killAt = performance.now() + random() * LONGEST_LIFE_MS;
      let seen = last;
      while (performance.now() < killAt) {
        seen = look(home, seen);
        report.reads += 1;
        await sleep(random());
      }
      storing.kill('SIGKILL');
      await closed;
      assert.equal(storing.signalCode, 'SIGKILL');
      const numbers = told.split('\n').slice(0, -1).map(Number);
      const held = await heldNumber(home);
      assert.ok(held !== undefined && held >= numbers.at(-1)!, 'a stored lease is gone');
      look(home, seen);
      const left = abandonedIn(home);
      assert.ok(left.length <= 1 && !before.includes(left[0]!), 'what was left is still there');
      report.stored += numbers.length;
      report.untold += held > numbers.at(-1)! ? 1 : 0;
      report.abandoned += left.length;
      last = held;
      onRound?.(round);
    }
    return report;
  } finally {
    rmSync(root, { recursive: true });
  }
}

/**
 * Sees that all files are whole, and that no lease is older than before.
 * @returns the number of the lease.
 */
function look(home: string, before: number): number {
  const { keyset, lease } = numberedFiles(home);
  const number = whole(lease);
  // Read after the lease, it cannot be older: it is written first.
  const copy = whole(backupOf(lease));
  assert.ok(number >= before && copy >= number, `${before} is followed by ${number} and ${copy}`);
  const keys = readFileSync(keyset, 'utf8');
  assert.ok([0, 1].map(keysetText).includes(keys), 'the keyset is not whole');
  return number;
}

function whole(path: string): number {
  const text = readFileSync(path, 'utf8');
  const number = numberOf(text);
  assert.equal(text, leaseText(number));
  return number;
}

function abandonedIn(home: string): readonly string[] {
  return readdirSync(home)
    .filter((name) => name.endsWith('.tmp'))
    .map((name) => join(home, name));
}
