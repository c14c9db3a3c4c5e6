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
  readonly #chunkBytes: number;
  /** Complete lines that were read; undefined for one that is not JSON. */
  #lines: (LedgerEntry | undefined)[] = [];
  /** End of these lines in the file, bytes. */
  #end = 0;

  /** @param chunkBytes maximum number of bytes in one read; Node allows less than 2 GiB */
  constructor(path: string, chunkBytes = 2 ** 26) {
    this.path = path;
    this.#chunkBytes = chunkBytes;
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
    /** Bytes after the last complete line. */
    let rest = Buffer.alloc(0);
    while (this.#end + rest.length < size) {
      const at = this.#end + rest.length;
      const chunk = Buffer.alloc(Math.min(this.#chunkBytes, size - at));
      const count = readSync(file, chunk, 0, chunk.length, at);
      if (count === 0) return;
      const bytes = Buffer.concat([rest, chunk.subarray(0, count)]);
      const used = this.#addLines(bytes);
      this.#end += used;
      rest = bytes.subarray(used);
    }
  }

  /** Adds the complete lines of the bytes, and returns their length. */
  #addLines(bytes: Buffer): number {
    let start = 0;
    for (;;) {
      const end = bytes.indexOf(LINE_FEED, start);
      if (end < 0) return start;
      this.#lines.push(parseEntry(bytes.toString('utf8', start, end)));
      start = end + 1;
    }
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
    const entry: unknown = JSON.parse(line);
    return isEntry(entry) ? entry : undefined;
  } catch {
    return undefined;
  }
}

const TEXTS = ['recorded_at', 'by', 'lock', 'family', 'from', 'to', 'prev_hash', 'hash'] as const;

function isEntry(value: unknown): value is LedgerEntry {
  if (typeof value !== 'object' || value === null) return false;
  const entry = value as Readonly<Record<string, unknown>>;
  const { seq, kind, symbols, bar_ms, count, trials } = entry;
  return (
    Number.isSafeInteger(seq) &&
    typeof bar_ms === 'number' &&
    TEXTS.every((name) => typeof entry[name] === 'string') &&
    Array.isArray(symbols) &&
    symbols.every((symbol) => typeof symbol === 'string') &&
    (kind === 'holdout_opened' ||
      (kind === 'trials' && typeof count === 'number' && typeof trials === 'string'))
  );
}
