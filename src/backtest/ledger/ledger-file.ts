import {
  closeSync,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { GENESIS, type ChainHead } from '../../base/hash-chain.ts';
import { withLockSync } from '../../base/file-lock.ts';
import { makeDirectory } from '../../base/make-directory.ts';
import { isSystemError } from '../../base/system-errors.ts';
import { notWritable } from '../write-text.ts';
import {
  entryAfter,
  verifyEntries,
  type LedgerEntry,
  type LedgerFault,
  type LedgerRecord,
} from './ledger-entry.ts';

/** Another process holds the lock for as long as one entry takes to write. */
const LOCK_WAIT_MS = 10_000;
const LINE_FEED = 10;

/**
 * An append-only file with a JSON line for each entry, each with the hash of the entry before it. Two
 * processes can append at once. An entry that a killed process has not written completely is removed
 * before the next one is appended.
 */
export class LedgerFile {
  readonly path: string;
  /** Complete lines that were read; undefined for one that is not JSON. */
  #lines: (LedgerEntry | undefined)[] = [];
  /** End of these lines in the file, bytes. */
  #end = 0;

  constructor(path: string) {
    this.path = path;
  }

  /** Reads the complete entries. A missing file has none. */
  read(): readonly LedgerEntry[] {
    if (!existsSync(this.path)) return [];
    this.#withFile('r', (file) => this.#readOn(file));
    return this.#entries();
  }

  /**
   * Appends a record, durably. No other process appends between the call of `decide` and the write.
   *
   * @param decide returns the record after these entries, or undefined for none
   * @throws ServiceError `output_not_writable`; `conflict`, reason `locked`
   */
  append(now: number, decide: (entries: readonly LedgerEntry[]) => LedgerRecord | undefined): void {
    this.#createDirectory();
    withLockSync(`${this.path}.lock`, LOCK_WAIT_MS, () => {
      this.#withFile('a+', (file) => {
        this.#readOn(file);
        const record = decide(this.#entries());
        if (record === undefined) return;
        const entry = entryAfter(this.#head(), now, record);
        ftruncateSync(file, this.#end);
        writeSync(file, `${JSON.stringify(entry)}\n`);
        fsyncSync(file);
        this.#readOn(file);
      });
    });
  }

  /** Checks the chain; see `verifyEntries`. The end of the file cannot be checked. */
  verify(): { readonly last: ChainHead; readonly faults: readonly LedgerFault[] } {
    this.read();
    return verifyEntries(this.#lines, GENESIS);
  }

  #entries(): LedgerEntry[] {
    return this.#lines.filter((entry) => entry !== undefined);
  }

  #head(): ChainHead {
    return this.#lines.findLast((entry) => entry !== undefined) ?? GENESIS;
  }

  /** Reads the lines that were appended since the last call. */
  #readOn(file: number): void {
    const { size } = fstatSync(file);
    if (size < this.#end) {
      this.#lines = [];
      this.#end = 0;
    }
    const bytes = Buffer.alloc(size - this.#end);
    const count = readSync(file, bytes, 0, bytes.length, this.#end);
    const complete = bytes.subarray(0, bytes.lastIndexOf(LINE_FEED, count - 1) + 1);
    this.#end += complete.length;
    this.#lines.push(...complete.toString().split('\n').slice(0, -1).map(parseEntry));
  }

  #createDirectory(): void {
    try {
      makeDirectory(dirname(this.path), 0o700);
    } catch (error) {
      throw isSystemError(error) ? notWritable(this.path, error, REMEDY) : error;
    }
  }

  #withFile(flags: 'r' | 'a+', work: (file: number) => void): void {
    try {
      const file = openSync(this.path, flags, 0o600);
      try {
        work(file);
      } finally {
        closeSync(file);
      }
    } catch (error) {
      throw isSystemError(error) ? notWritable(this.path, error, REMEDY) : error;
    }
  }
}

const REMEDY = 'Make the directory writable, or set SERVICE_LOCAL_HOME to another one.';

/** Returns undefined for a line that is not an entry. */
function parseEntry(line: string): LedgerEntry | undefined {
  try {
    const entry = JSON.parse(line) as Partial<LedgerEntry> | null;
    return typeof entry?.seq === 'number' && typeof entry.hash === 'string'
      ? (entry as LedgerEntry)
      : undefined;
  } catch {
    return undefined;
  }
}
