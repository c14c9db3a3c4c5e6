/** The code of a strategy that travels with a version of its bot: texts by path beside the spec. */
import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import canonicalize from 'canonicalize';
import type { Problem } from '../errors.ts';

/** Texts by path, relative to the spec and below it, with `/`. */
export type Bundle = Readonly<Record<string, string>>;

const MOST_FILES = 32;
/** In all, so that it fits into a request beside the spec. */
const MOST_BYTES = 96 * 1024;
const PATH = /^(?=.{1,200}$)[A-Za-z0-9_][\w.-]*(\/[A-Za-z0-9_][\w.-]*)*\.(ts|mts|js|mjs|json)$/;

/** What keeps a server from taking the files, whatever code is in them; one sentence each. */
export function bundleFaults(files: Bundle): string[] {
  const names = Object.keys(files);
  const size = names.reduce((sum, name) => sum + Buffer.byteLength(files[name]!), 0);
  return [
    ...(names.length > MOST_FILES ? [`${names.length} files, more than ${MOST_FILES}`] : []),
    ...(size > MOST_BYTES ? [`${size} bytes of files, more than ${MOST_BYTES}`] : []),
    ...names
      .filter((name) => !PATH.test(name) || name.includes('__proto__'))
      .slice(0, MOST_FILES)
      .map((name) => `${JSON.stringify(name)} is no path of a .ts, .mts, .js, .mjs or .json file`),
  ];
}

/** The path in a bundle that a spec means by `strategy.module`. */
export function entryOf(module: string): string {
  return posix.normalize(module);
}

/** SHA-256 of each file, by path. */
export function digestsOf(files: Bundle): Record<string, string> {
  return Object.fromEntries(
    Object.keys(files)
      .toSorted()
      .map((name) => [name, sha256(files[name]!)]),
  );
}

/** SHA-256 over the paths and the hashes of the files, in canonical JSON. */
export function bundleHash(files: Bundle): string {
  return sha256(canonicalize(digestsOf(files))!);
}

/** What identifies a version: that of its spec alone, or of spec and code. */
export function versionHash(spec: string, bundle: string | null): string {
  return bundle === null ? spec : sha256(canonicalize({ bundle, spec })!);
}

/** A server that runs no code but its own. */
export const CODE_IS_OFF: Pick<Problem, 'code' | 'message'> = {
  code: 'module_not_hosted',
  message:
    'this server runs no code but its own: its setting custom_code is off. Name a built-in strategy, or run the bot on your own machine',
};

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
