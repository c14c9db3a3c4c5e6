import { readFileSync } from 'node:fs';
import { basename, dirname, extname, join } from 'node:path';
import { z } from 'zod';
import { writeAtomically } from '../base/atomic-file.ts';
import { canonicalDigest, lockOf } from '../backtest/run-lock.ts';
import type { Lock } from '../backtest/summary.ts';
import { ServiceError } from '../base/errors.ts';
import { isSystemError, writeRemedy } from '../base/system-errors.ts';

/**
 * SHA-256 over the spec in canonical JSON (RFC 8785), without comments and layout. Defaults are not
 * included, so that new optional fields do not change the hashes of existing versions.
 */
export function specHash(document: unknown): string {
  return canonicalDigest(document);
}

/** Example: `bots/sma.lock.json` for `bots/sma.yaml`. */
export function lockPath(specFile: string): string {
  return join(dirname(specFile), `${basename(specFile, extname(specFile))}.lock.json`);
}

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
const lockSchema = z.strictObject({
  digest: sha256,
  spec: sha256,
  engine: z.string(),
  seed: z.number(),
  strategy: z.union([z.string(), z.record(z.string(), sha256)]),
  data: z.record(z.string(), sha256),
  warm_up: z.record(z.string(), sha256).optional(),
  benchmark: sha256.optional(),
  models: z.strictObject({ runtime: z.string(), files: z.record(z.string(), sha256) }).optional(),
  outside: z.array(z.string()).optional(),
  trials: z
    .strictObject({
      count: z.int(),
      sharpe_count: z.int(),
      sharpe_mean: z.number().nullable(),
      sharpe_variance: z.number().nullable(),
    })
    .optional(),
});

/**
 * Reads the lock of a spec; `undefined` if there is no lock file.
 *
 * @throws ServiceError `invalid_data` if the file is unreadable, not a lock, or was edited.
 */
export function readLock(specFile: string): Lock | undefined {
  const file = lockPath(specFile);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    if (isSystemError(cause, 'ENOENT')) return undefined;
    throw unusable(file, 'the file cannot be read', cause);
  }
  const lock = lockSchema.safeParse(jsonOf(text)).data;
  if (lock === undefined) throw unusable(file, 'the content is not a lock');
  if (lockOf(lock).digest !== lock.digest)
    throw unusable(file, 'the digest does not match the content');
  return lock;
}

/** Replaces the lock file atomically and returns its path. */
export async function writeLock(specFile: string, lock: Lock): Promise<string> {
  const file = lockPath(specFile);
  try {
    await writeAtomically(file, [`${JSON.stringify(lock, null, 2)}\n`]);
  } catch (cause) {
    throw new ServiceError('output_not_writable', `cannot write ${file}`, {
      remedy: writeRemedy(cause, 'Make the directory of the bot file writable.'),
      cause,
    });
  }
  return file;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function unusable(file: string, reason: string, cause?: unknown): ServiceError {
  return new ServiceError('invalid_data', `cannot use ${file}: ${reason}`, {
    remedy: 'Restore the file, or replace it by running the backtest with --write-lock.',
    cause,
  });
}
