/**
 * What travels with a version of a bot: the code of its strategy, and its models. Texts by path beside
 * the spec; of an ONNX file the text is its bytes in base64.
 */
import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import canonicalize from 'canonicalize';
import type { Problem } from '../base/errors.ts';

/** Texts by path, relative to the spec and below it, with `/`. */
export type Bundle = Readonly<Record<string, string>>;

const MOST_FILES = 32;
/** In all, so that it fits into a request beside the spec. */
const MOST_BYTES = 96 * 1024;
/** Of models; with code and spec they fit into a request, and into a ConfigMap of a cluster. */
const MOST_MODEL_BYTES = 512 * 1024;
const PATH =
  /^(?=.{1,200}$)[A-Za-z0-9_][\w.-]*(\/[A-Za-z0-9_][\w.-]*)*\.(ts|mts|js|mjs|json|onnx)$/;

/** What keeps a server from taking the files, whatever code is in them; one sentence each. */
export function bundleFaults(files: Bundle): string[] {
  const names = Object.keys(files);
  const sizeOf = (some: readonly string[]): number =>
    some.reduce((sum, name) => sum + bytesOf(files, name).length, 0);
  const size = sizeOf(names.filter((name) => !isModel(name)));
  const modelSize = sizeOf(names.filter(isModel));
  return [
    ...(names.length > MOST_FILES ? [`${names.length} files, more than ${MOST_FILES}`] : []),
    ...(size > MOST_BYTES ? [`${size} bytes of files, more than ${MOST_BYTES}`] : []),
    ...(modelSize > MOST_MODEL_BYTES
      ? [`${modelSize} bytes of models, more than ${MOST_MODEL_BYTES}`]
      : []),
    ...names
      .filter((name) => isModel(name) && base64Of(bytesOf(files, name)) !== files[name])
      .map((name) => `${JSON.stringify(name)} is not in base64`),
    ...names
      .filter((name) => !PATH.test(name) || name.includes('__proto__'))
      .slice(0, MOST_FILES)
      .map(pathFault),
  ];
}

/** Also of a path of Windows. */
const OUTSIDE = /^(?:[/\\~]|[A-Za-z]:|\.\.(?:\/|$))/;

function pathFault(name: string): string {
  return OUTSIDE.test(name)
    ? `${JSON.stringify(name)} is not below the directory of the bot file: put the file there, and name it by its path relative to the bot file, such as ./models/rise.onnx`
    : `${JSON.stringify(name)} is no path of a .ts, .mts, .js, .mjs, .json or .onnx file, in letters, digits, dots, _ and -, with at most 200 characters`;
}

/** The code of a strategy; undefined where there is none. */
export function codeOf(files: Bundle | undefined): Bundle | undefined {
  const code = Object.entries(files ?? {}).filter(([name]) => !isModel(name));
  return code.length === 0 ? undefined : Object.fromEntries(code);
}

/** Paths of models. */
export function modelsIn(files: Bundle | undefined): string[] {
  return Object.keys(files ?? {}).filter(isModel);
}

/** A file as it was before it was put into a bundle. */
export function bytesOf(files: Bundle, name: string): Uint8Array {
  return Buffer.from(files[name]!, isModel(name) ? 'base64' : 'utf8');
}

/** A file of a model as it is in a bundle. */
export function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

function isModel(name: string): boolean {
  return name.endsWith('.onnx');
}

/** The path in a bundle that a spec means by `strategy.module`, or the path of a model. */
export function entryOf(path: string): string {
  return posix.normalize(path);
}

/** SHA-256 of each file, by path. */
export function digestsOf(files: Bundle): Record<string, string> {
  return Object.fromEntries(
    Object.keys(files)
      .toSorted()
      .map((name) => [name, sha256(bytesOf(files, name))]),
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

function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
