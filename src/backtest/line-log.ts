import { closeSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { ServiceError } from '../base/errors.ts';
import { isSystemError } from '../base/system-errors.ts';
import { notWritable } from './write-text.ts';

/**
 * File of lines from which interrupted work resumes. The first line identifies the work. A line that a
 * killed process left incomplete is removed.
 */
export class LineLog {
  readonly #file: string;
  readonly #descriptor: number;

  private constructor(file: string) {
    this.#file = file;
    this.#descriptor = openSync(file, 'a+');
  }

  /**
   * Opens or creates a log.
   *
   * @param work kind of work that the log belongs to, for the error
   * @param onLine is called with each line after the first
   * @throws ServiceError `conflict` if the file begins with another line
   */
  static open(
    file: string,
    { work, header }: { readonly work: string; readonly header: string },
    onLine: (text: string) => void,
  ): LineLog {
    try {
      const log = new LineLog(file);
      log.#read(work, header, onLine);
      return log;
    } catch (error) {
      throw isSystemError(error) ? notWritable(file, error) : error;
    }
  }

  append(text: string): void {
    try {
      writeSync(this.#descriptor, `${text}\n`);
    } catch (error) {
      throw notWritable(this.#file, error);
    }
  }

  close(): void {
    closeSync(this.#descriptor);
  }

  #read(work: string, header: string, onLine: (text: string) => void): void {
    let end = 0;
    for (const line of linesOf(this.#descriptor)) {
      if (end > 0) onLine(line.text);
      else if (line.text !== header) {
        this.close();
        throw new ServiceError('conflict', `${dirname(this.#file)} contains another ${work}`, {
          remedy: 'Choose another directory, or delete this one.',
        });
      }
      end = line.end;
    }
    ftruncateSync(this.#descriptor, end);
    if (end === 0) this.append(header);
  }
}

const BLOCK_BYTES = 1 << 20;
const LINE_FEED = 10;

/** Complete lines of a file, each with the position of its end in bytes. */
function* linesOf(descriptor: number): Generator<{ readonly text: string; readonly end: number }> {
  const block = Buffer.allocUnsafe(BLOCK_BYTES);
  let rest = Buffer.alloc(0);
  let end = 0;
  for (;;) {
    const count = readSync(descriptor, block, 0, BLOCK_BYTES, end + rest.length);
    if (count === 0) return;
    const bytes = Buffer.concat([rest, block.subarray(0, count)]);
    let from = 0;
    for (let to = bytes.indexOf(LINE_FEED); to >= 0; to = bytes.indexOf(LINE_FEED, from)) {
      const text = bytes.toString('utf8', from, to);
      end += to + 1 - from;
      from = to + 1;
      yield { text, end };
    }
    rest = bytes.subarray(from);
  }
}
