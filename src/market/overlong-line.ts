import { createReadStream } from 'node:fs';
import { open } from 'node:fs/promises';

/**
 * Maximum line length, bytes. DuckDB rejects lines twice as long without a reason. If a line
 * exceeds its buffers, it silently drops the last line or treats the file as empty.
 */
const LONGEST_LINE = 1 << 20;

const PIECE = 4096;
const LINE_FEED = 0x0a;
const RETURN = 0x0d;

/**
 * Finds a line of at least twice `LONGEST_LINE`, and some shorter ones. Reads only a small part of
 * the file: a line of that length fills a whole block, and the start of a block usually contains
 * the end of a line.
 *
 * @returns the line number, 1-based
 */
export async function findOverlongLine(path: string): Promise<number | undefined> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const buffer = Buffer.alloc(PIECE);
    for (let block = 0; block + LONGEST_LINE <= size; block += LONGEST_LINE) {
      let isOneLine = true;
      for (let at = block; isOneLine && at < block + LONGEST_LINE; at += PIECE) {
        const { bytesRead } = await file.read(buffer, 0, PIECE, at);
        isOneLine = !endsLine(buffer.subarray(0, bytesRead));
      }
      if (isOneLine) return await lineAt(path, block);
    }
    return undefined;
  } finally {
    await file.close();
  }
}

/** Finds such a line in a text that arrives in chunks of at most `LONGEST_LINE`. */
export class OverlongLine {
  #length = 0;

  /** Whether the line at the start of the chunk is too long. */
  isFoundIn(chunk: Buffer): boolean {
    const end = chunk.includes(LINE_FEED) ? LINE_FEED : RETURN;
    const first = chunk.indexOf(end);
    this.#length += first === -1 ? chunk.length : first;
    if (this.#length >= 2 * LONGEST_LINE) return true;
    if (first !== -1) this.#length = chunk.length - chunk.lastIndexOf(end) - 1;
    return false;
  }
}

/**
 * Returns the number of the first line of at least twice `LONGEST_LINE` in a text that has such a line.
 * Reads everything before it.
 */
export async function overlongLineOf(text: AsyncIterable<Buffer>): Promise<number> {
  let line = 1;
  let length = 0;
  for await (const chunk of text) {
    for (let from = 0; from < chunk.length;) {
      const end = chunk.indexOf(LINE_FEED, from);
      length += (end === -1 ? chunk.length : end) - from;
      if (length >= 2 * LONGEST_LINE) return line;
      if (end === -1) break;
      length = 0;
      line += 1;
      from = end + 1;
    }
  }
  return line;
}

const endsLine = (piece: Buffer): boolean => piece.includes(LINE_FEED) || piece.includes(RETURN);

/**
 * Number of the line with the byte at `offset`, counted by line feeds, or by carriage returns if
 * there are none.
 */
async function lineAt(path: string, offset: number): Promise<number> {
  let feeds = 0;
  let returns = 0;
  if (offset === 0) return 1;
  for await (const chunk of createReadStream(path, { end: offset - 1 }) as AsyncIterable<Buffer>) {
    for (const byte of chunk) {
      if (byte === LINE_FEED) feeds += 1;
      else if (byte === RETURN) returns += 1;
    }
  }
  return 1 + (feeds > 0 ? feeds : returns);
}
