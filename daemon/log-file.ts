import { closeSync, constants, lstatSync, openSync, renameSync, writeSync } from 'node:fs';
import { isSystemError } from '../src/base/errors.ts';
import type { DaemonFiles } from './files.ts';

/** As much again is kept of what was before. */
const MOST_BYTES = 1024 * 1024;

/** A link, or a pipe that nobody reads, is no place for a log. */
const FLAGS =
  constants.O_WRONLY |
  constants.O_APPEND |
  constants.O_CREAT |
  constants.O_NOFOLLOW |
  constants.O_NONBLOCK;

/**
 * Appends a line to the log, which only this user can read. The file is opened for each line: there are few,
 * and whoever moves or removes the file gets a new one.
 *
 * @returns why the line is not there, when it is not: a log that cannot be written stops nobody.
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
