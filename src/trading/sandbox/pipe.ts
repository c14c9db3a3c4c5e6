/**
 * Messages of a sandbox process over its standard input and output: the length in bytes (32 bits,
 * little-endian), followed by these bytes. Reading and writing are synchronous, because the process
 * reads, works and writes in turn.
 */
import { readSync, writeSync } from 'node:fs';

/** Copies, because the sandbox removes or freezes the globals. */
const { stringify } = JSON;
const Bytes = Buffer;
const self = process;

function read(length: number): Uint8Array {
  const bytes = Bytes.allocUnsafe(length);
  for (let at = 0; at < length;) {
    const got = readSync(0, bytes, at, length - at, null);
    if (got === 0) self.exit(0);
    at += got;
  }
  return bytes;
}

/** Reads the next message. Ends the process at the end of its input. */
export function readMessage(): Uint8Array {
  const head = read(4);
  return read(head[0]! + head[1]! * 0x100 + head[2]! * 0x10000 + head[3]! * 0x1000000);
}

export function encodeMessage(message: object): Uint8Array {
  const body = Bytes.from(stringify(message));
  const head = Bytes.allocUnsafe(4);
  head.writeUInt32LE(body.length);
  return Bytes.concat([head, body]);
}

/** Writes the output of `encodeMessage`. */
export function writeMessage(bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length;) at += writeSync(1, bytes, at, bytes.length - at);
}
