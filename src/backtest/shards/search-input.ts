import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import type { TrialSetup } from '../search/trial.ts';
import { decodeColumns, decodeText, encodeColumns } from './column-codec.ts';

/** A strategy that other machines can run: a built-in one, or source text by path. */
export type SentStrategy =
  | { readonly name: string }
  | { readonly files: Readonly<Record<string, string>>; readonly entry: string };

/** Everything that trials need but their parameters. */
export interface SearchInput {
  readonly strategy: SentStrategy;
  readonly setups: readonly TrialSetup[];
}

/** An input in bytes, identified by their SHA-256 in hex. */
export interface EncodedInput {
  readonly digest: string;
  /** Compressed by gzip. */
  readonly bytes: Uint8Array;
}

/** Fast, since prices compress little better with more work. */
const GZIP_LEVEL = 1;

export async function encodeInput(input: SearchInput): Promise<EncodedInput> {
  const bytes = encodeColumns(input);
  const digest = createHash('sha256').update(bytes).digest('hex');
  return { digest, bytes: await promisify(gzip)(bytes, { level: GZIP_LEVEL }) };
}

/**
 * Returns the bytes of an input for `decodeInput`.
 * @throws Error if they are damaged
 */
export async function unpackInput({ digest, bytes }: EncodedInput): Promise<Uint8Array> {
  const unpacked = await promisify(gunzip)(bytes);
  const found = createHash('sha256').update(unpacked).digest('hex');
  if (found !== digest) throw new Error(`the input ${digest} has the digest ${found}`);
  return unpacked;
}

/** The strategy of an input, without decoding its bars. */
export function strategyOf(bytes: Uint8Array): SentStrategy {
  return (decodeText(bytes) as SearchInput).strategy;
}

export function decodeInput(bytes: Uint8Array): SearchInput {
  return decodeColumns(bytes) as SearchInput;
}
