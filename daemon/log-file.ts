import { closeSync, constants, lstatSync, openSync, renameSync, writeSync } from 'node:fs';
import { isSystemError } from '../src/base/system-errors.ts';
import type { DaemonFiles } from './daemon-files.ts';

/** Size at which the log is rotated; one older log of this size is kept. */
const MOST_BYTES = 1024 * 1024;

/** Refuses links, and pipes without a reader. */
const FLAGS =
  constants.O_WRONLY |
  constants.O_APPEND |
  constants.O_CREAT |
  constants.O_NOFOLLOW |
  constants.O_NONBLOCK;

/**
 * Appends a line to the log, which only this user can read. Opens the file for each line, so that a
 * moved or removed log is created again.
 *
 * @returns why the line could not be written; undefined on success.
 */
export function appendLine(
  { log, olderLog }: Pick<DaemonFiles, 'log' | 'olderLog'>,
  line: string,
): string | undefined {
  const text = `${line}\n`;
  try {
    const { size = 0 } = lstatSync(log, { throwIfNoEntry: false }) ?? {};
    if (size + Buffer.byteLength(text) > MOST_BYTES) renameSync(log, olderLog);
    const file = openSync(log, FLAGS, 0o600);
    try {
      writeSync(file, text);
    } finally {
      closeSync(file);
    }
    return undefined;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    return error.message;
  }
}
