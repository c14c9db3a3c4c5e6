import { createHash, type Hash } from 'node:crypto';
import { writeAtomically } from '../base/atomic-file.ts';
import { ServiceError } from '../base/errors.ts';
import { isSystemError, writeRemedy } from '../base/system-errors.ts';

/**
 * Writes a file that appears whole or not at all.
 *
 * @returns the sha256 of its content
 * @throws ServiceError `output_not_writable`
 */
export async function writeText(path: string, parts: Iterable<string>): Promise<string> {
  const hash = createHash('sha256');
  try {
    await writeAtomically(path, blocksOf(parts, hash));
  } catch (error) {
    throw isSystemError(error) ? notWritable(path, error) : error;
  }
  return hash.digest('hex');
}

/** Small enough for V8's young generation; larger texts would wait for a full collection. */
const PIECE_CHARACTERS = 1 << 14;
const BLOCK_BYTES = 1 << 20;

/**
 * Joins the parts into blocks, to save system calls, and adds them to the hash. All blocks share their
 * memory, so a block is valid only until the next one is requested.
 */
function* blocksOf(parts: Iterable<string>, hash: Hash): Generator<Uint8Array> {
  const encoder = new TextEncoder();
  let memory = new Uint8Array(BLOCK_BYTES);
  let filled = 0;
  const block = (): Uint8Array => {
    const bytes = memory.subarray(0, filled);
    filled = 0;
    hash.update(bytes);
    return bytes;
  };
  for (const piece of piecesOf(parts)) {
    // UTF-8 needs at most three bytes per UTF-16 unit.
    const most = 3 * piece.length;
    if (filled + most > memory.length) yield block();
    if (most > memory.length) memory = new Uint8Array(most);
    filled += encoder.encodeInto(piece, memory.subarray(filled)).written;
  }
  yield block();
}

function* piecesOf(parts: Iterable<string>): Generator<string> {
  let piece = '';
  for (const part of parts) {
    piece += part;
    if (piece.length < PIECE_CHARACTERS) continue;
    yield piece;
    piece = '';
  }
  yield piece;
}

export function notWritable(
  path: string,
  cause: unknown,
  remedy = 'Choose a directory that exists and that you may write to.',
): ServiceError {
  const reason = isSystemError(cause) ? cause.code : String(cause);
  return new ServiceError('output_not_writable', `cannot write ${path} (${reason})`, {
    remedy: writeRemedy(cause, remedy),
    cause,
  });
}
