/**
 * Files sent along with the spec of a bot: the code of its strategy, and its ONNX models, which are
 * encoded in base64.
 */
import { createHash } from 'node:crypto';
import { posix } from 'node:path';
import canonicalize from 'canonicalize';
import type { Problem } from '../base/errors.ts';

/** Contents by path. Paths use `/`, are relative to the spec and stay below its directory. */
export type Bundle = Readonly<Record<string, string>>;

const MOST_FILES = 32;
/** Total size of the code, which must fit into one request together with the spec. */
const MOST_BYTES = 96 * 1024;
/** Total size of the models. With code and spec they must fit into a request and a ConfigMap. */
const MOST_MODEL_BYTES = 512 * 1024;
const PATH =
  /^(?=.{1,200}$)[A-Za-z0-9_][\w.-]*(\/[A-Za-z0-9_][\w.-]*)*\.(ts|mts|js|mjs|json|onnx)$/;

/** Reasons for a server to reject the files, one sentence each. Does not examine their code. */
export function bundleFaults(files: Bundle): string[] {
  const names = Object.keys(files);
  const sizeOf = (some: readonly string[]): number =>
    some.reduce((sum, name) => sum + bytesOf(files, name).length, 0);
  const size = sizeOf(names.filter((name) => !isModel(name)));
  const modelSize = sizeOf(names.filter(isModel));
  return [
    ...(names.length > MOST_FILES
      ? [`${names.length} files were sent; at most ${MOST_FILES} are allowed`]
      : []),
    ...(size > MOST_BYTES ? [`the code has ${size} bytes; at most ${MOST_BYTES} are allowed`] : []),
    ...(modelSize > MOST_MODEL_BYTES
      ? [`the models have ${modelSize} bytes; at most ${MOST_MODEL_BYTES} are allowed`]
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

/** Includes absolute Windows paths. */
const OUTSIDE = /^(?:[/\\~]|[A-Za-z]:|\.\.(?:\/|$))/;

function pathFault(name: string): string {
  if (name.startsWith('./') && PATH.test(entryOf(name))) {
    return `${JSON.stringify(name)} begins with ./; drop it, and send the file as ${JSON.stringify(entryOf(name))}`;
  }
  return OUTSIDE.test(name)
    ? `${JSON.stringify(name)} is not below the directory of the bot file; move the file there and use its path relative to the bot file, such as ./models/rise.onnx`
    : `${JSON.stringify(name)} is not an accepted path: use a .ts, .mts, .js, .mjs, .json or .onnx file, only letters, digits, dots, _ and - in names, and at most 200 characters`;
}

/** Files other than models; undefined if there are none. */
export function codeOf(files: Bundle | undefined): Bundle | undefined {
  const code = Object.entries(files ?? {}).filter(([name]) => !isModel(name));
  return code.length === 0 ? undefined : Object.fromEntries(code);
}

export function modelsIn(files: Bundle | undefined): string[] {
  return Object.keys(files ?? {}).filter(isModel);
}

/** Original bytes of a file in a bundle. */
export function bytesOf(files: Bundle, name: string): Uint8Array {
  return Buffer.from(files[name]!, isModel(name) ? 'base64' : 'utf8');
}

/** Encodes a model file for a bundle. */
export function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64');
}

function isModel(name: string): boolean {
  return name.endsWith('.onnx');
}

/** Converts a path of the spec, such as `./strategy.ts`, to the path used in a bundle. */
export function entryOf(path: string): string {
  return posix.normalize(path);
}

/** SHA-256 of each original file, by path. */
export function digestsOf(files: Bundle): Record<string, string> {
  return Object.fromEntries(
    Object.keys(files)
      .toSorted()
      .map((name) => [name, sha256(bytesOf(files, name))]),
  );
}

/** SHA-256 over `digestsOf` in canonical JSON. */
export function bundleHash(files: Bundle): string {
  return sha256(canonicalize(digestsOf(files))!);
}

/** Hash that identifies a version, from the hash of its spec and of its bundle, if it has one. */
export function versionHash(spec: string, bundle: string | null): string {
  return bundle === null ? spec : sha256(canonicalize({ bundle, spec })!);
}

/** Problem for code sent to a server with `custom_code` off. */
export const CODE_IS_OFF: Pick<Problem, 'code' | 'message'> = {
  code: 'module_not_hosted',
  message:
    'this server does not run custom code, because its setting custom_code is off; start the server with --custom-code true, use a built-in strategy, or run the bot on your own machine',
};

function sha256(content: string | Uint8Array): string {
  return createHash('sha256').update(content).digest('hex');
}
