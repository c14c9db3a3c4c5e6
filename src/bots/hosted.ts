import { ServiceError, type Problem } from '../base/errors.ts';
import { isAddress } from '../market/catalogue.ts';
import type { Model } from './models/model.ts';
import {
  bundleFaults,
  bytesOf,
  codeOf,
  CODE_IS_OFF,
  entryOf,
  modelsIn,
  type Bundle,
} from './bundle.ts';
import type { Path, SourceDocument } from './document.ts';
import { fieldsOf, isFields, listOf } from './fields.ts';
import { readModels, type FileOf } from './model-checks.ts';
import { inOrder, parseSpec } from './parse.ts';
import { botSpecSchema, type BotSpec } from './spec.ts';
import { specHash } from './spec-lock.ts';

/** A spec sent to a server, as data or as YAML text, with its code and models. */
export type SentSpec = (
  | { readonly document: Readonly<Record<string, unknown>> }
  | { readonly yaml: string }
) & { readonly files?: Bundle | undefined };

/** A spec that a server has accepted. */
export interface HostedSpec {
  /** The spec as plain data, without defaults. */
  readonly document: unknown;
  /** The document with its defaults filled in. */
  readonly spec: BotSpec;
  /** See `specHash`. */
  readonly hash: string;
  /** See `Bot.declared`. */
  readonly declared: BotSpec;
  /** Code of a custom strategy, and models; undefined instead of empty. */
  readonly files: Bundle | undefined;
  /** In the order of the spec. */
  readonly models: readonly Model[];
}

/**
 * Checks a spec as `service-local validate` does, and that it needs no file of its author's machine.
 *
 * @param allowsCode whether the server runs custom strategies.
 * @param isStored whether a server accepted the spec before; see `nameProblems`.
 * @throws ServiceError `invalid_spec` with every problem; pointers refer to the spec.
 */
export function readHostedSpec(sent: SentSpec, allowsCode = false, isStored = true): HostedSpec {
  const { hosted, problems } = checkHostedSpec(sent, allowsCode, isStored);
  if (hosted === undefined) throw invalidSpec(problems, 'yaml' in sent);
  return hosted;
}

/** Result of checking a spec that was sent to a server. */
export interface CheckedSpec {
  /** Undefined if there are problems. */
  readonly hosted: HostedSpec | undefined;
  /** In the order of the text. Lines and columns refer to the sent YAML, or to nothing for data. */
  readonly problems: readonly Problem[];
  readonly document: SourceDocument;
}

/** Like `readHostedSpec`, but returns the problems. */
export function checkHostedSpec(
  sent: SentSpec,
  allowsCode: boolean,
  isStored: boolean,
): CheckedSpec {
  const { spec, document, problems } = parseSpec(
    'yaml' in sent ? sent.yaml : JSON.stringify(sent.document),
    'the spec',
    isStored,
  );
  // The hash of a version must not depend on whether files are empty or absent.
  const files = Object.keys(sent.files ?? {}).length === 0 ? undefined : sent.files;
  const faults = files === undefined ? [] : bundleFaults(files);
  const { models, problems: modelFaults } = readModels(document, sentModels(files), problems);
  const all = [
    ...problems,
    ...hostedProblems(document),
    ...codeProblems(document, files, allowsCode),
    ...bundleProblems(faults, document),
    ...modelFaults,
    ...unnamedModels(document, files),
  ];
  if (spec === undefined || all.length > 0) {
    return { hosted: undefined, problems: inOrder(all), document };
  }
  const { value } = document;
  const hosted = { document: value, spec, hash: specHash(value), declared: spec, files, models };
  return { hosted, problems: [], document };
}

/** Values that override a spec for one run. */
export interface SpecChanges {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly params?: Readonly<Record<string, unknown>> | undefined;
  /** JSON merge patch (RFC 7396) of the whole document. The other values take precedence. */
  readonly patch?: Readonly<Record<string, unknown>> | undefined;
}

/** Pointers into the spec, and the matching pointers into the changes. */
const CHANGED: readonly (readonly [inSpec: string, inChanges: string])[] = [
  ['/spec/strategy/params', '/params'],
  ['/spec/data/from', '/from'],
  ['/spec/data/to', '/to'],
];

/**
 * Returns the spec with these values, checked again and with a hash of its own.
 *
 * @param document a spec that the server accepted.
 * @param files its code and models. Code is checked as on a server that allows it.
 * @throws ServiceError `invalid_spec`; problems of changed values have pointers into the changes.
 */
export function readChangedSpec(
  document: unknown,
  changes: SpecChanges,
  files?: Bundle,
): HostedSpec {
  try {
    const isCode = codeOf(files) !== undefined;
    const changed = readHostedSpec({ document: withChanges(document, changes), files }, isCode);
    return { ...changed, declared: botSpecSchema.parse(document) };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const problems = error.problems.map(({ pointer = '', ...rest }) => {
      const [inSpec, inChanges] = CHANGED.find(([start]) => pointer.startsWith(start)) ?? ['', ''];
      const field = fieldsOf(changes)[inChanges.slice(1)];
      return field === undefined
        ? { ...rest, pointer }
        : { ...rest, pointer: inChanges + pointer.slice(inSpec.length) };
    });
    throw invalidSpec(problems, false);
  }
}

export function withChanges(
  document: unknown,
  { from, to, params = {}, patch = {} }: SpecChanges,
): Record<string, unknown> {
  const data = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
  const strategy = Object.keys(params).length > 0 && { strategy: { params } };
  const values = { ...(Object.keys(data).length > 0 && { data }), ...strategy };
  const patched = mergePatch(structuredClone(document), patch) as Record<string, unknown>;
  return Object.keys(values).length === 0
    ? patched
    : (mergePatch(patched, { spec: values }) as Record<string, unknown>);
}

/** JSON merge patch as in RFC 7396, section 2. */
function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isFields(patch)) return patch;
  const merged = new Map(Object.entries(fieldsOf(target)));
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name);
    else merged.set(name, mergePatch(merged.get(name), value));
  }
  return Object.fromEntries(merged);
}

const MOST_PROBLEMS = 100;

/** @param isText whether the sender has the text, so that messages start with line and column. */
export function invalidSpec(problems: readonly Problem[], isText: boolean): ServiceError {
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`;
  const more = problems.length > MOST_PROBLEMS ? `; the first ${MOST_PROBLEMS} are listed` : '';
  return new ServiceError('invalid_spec', `the spec has ${count}${more}`, {
    problems: problems.slice(0, MOST_PROBLEMS).map((problem) => {
      const { line, column, message } = problem;
      const place = isText && line !== undefined ? `line ${line}, column ${column}: ` : '';
      return { ...problem, message: place + message };
    }),
  });
}

/** Problems that only a server reports. The spec may have other problems. */
export function hostedProblems(document: SourceDocument): Problem[] {
  const { metadata, spec } = fieldsOf(document.value);
  const { data, universe } = fieldsOf(spec);
  const { source, sources, benchmark } = fieldsOf(data);
  const files = Object.entries(fieldsOf(sources)).map(
    ([symbol, file]) => [['spec', 'data', 'sources', symbol], file] as const,
  );
  const texts: readonly (readonly [at: Path, value: unknown, rule: Rule])[] = [
    [['metadata', 'slug'], fieldsOf(metadata).slug, SLUG],
    [['spec', 'data', 'source'], source, DATA],
    ...files.map(([at, file]) => [at, file, DATA] as const),
    ...(listOf(fieldsOf(universe).symbols).includes(benchmark)
      ? []
      : [[['spec', 'data', 'benchmark'], benchmark, DATA] as const]),
  ];
  return texts.flatMap(([at, value, { accepts, code, message }]) =>
    typeof value !== 'string' || accepts(value) ? [] : [document.problem(at, { code, message })],
  );
}

/** Problems of the code that was, or should have been, sent with a spec. */
function codeProblems(
  document: SourceDocument,
  files: Bundle | undefined,
  allowsCode: boolean,
): Problem[] {
  const { strategy } = fieldsOf(fieldsOf(document.value).spec);
  const { module } = fieldsOf(strategy);
  const at: Path = ['spec', 'strategy', 'module'];
  const problem = (message: string): Problem =>
    document.problem(at, { code: 'module_not_hosted', message });
  const code = codeOf(files);
  if (typeof module !== 'string') {
    return code === undefined
      ? []
      : [problem('missing, although code was sent; name the main file of the strategy')];
  }
  if (!allowsCode) return [document.problem(at, CODE_IS_OFF)];
  if (code === undefined) return [problem('must be sent with the spec, in files')];
  // A path such as `./own.ts` has a fault of its own.
  return Object.keys(code).some((path) => entryOf(path) === entryOf(module))
    ? []
    : [problem('is not among the files that were sent')];
}

/** Faults of a bundle, located at the field that needs the files. */
function bundleProblems(faults: readonly string[], document: SourceDocument): Problem[] {
  const { strategy } = fieldsOf(fieldsOf(document.value).spec);
  const isCode = typeof fieldsOf(strategy).module === 'string';
  const at: Path = isCode ? ['spec', 'strategy', 'module'] : ['spec', 'ml_models'];
  const code = isCode ? 'module_not_hosted' : 'model_not_hosted';
  return faults.map((message) => document.problem(at, { code, message }));
}

function sentModels(files: Bundle | undefined): FileOf {
  const known = new Map<string, Uint8Array>();
  return (path) => {
    const name = entryOf(path);
    if (files !== undefined && Object.hasOwn(files, name)) {
      // `readModel` caches its work per byte array, and several models may share a file.
      const bytes = known.get(name) ?? bytesOf(files, name);
      known.set(name, bytes);
      return bytes;
    }
    return { code: 'model_not_hosted', message: 'must be sent with the spec, in files' };
  };
}

function unnamedModels(document: SourceDocument, files: Bundle | undefined): Problem[] {
  const paths = listOf(fieldsOf(fieldsOf(document.value).spec).ml_models).map(
    (model) => fieldsOf(model).path,
  );
  const named = new Set(paths.filter((path) => typeof path === 'string').map(entryOf));
  return modelsIn(files)
    .filter((name) => !named.has(name))
    .map((name) => {
      const message = `${JSON.stringify(name)} was sent, but no model has this path`;
      return document.problem(['spec', 'ml_models'], { code: 'model_not_hosted', message });
    });
}

interface Rule extends Pick<Problem, 'code' | 'message'> {
  readonly accepts: (value: string) => boolean;
}

/** Form of a `bot_id`, which paths of the API accept in place of a slug. */
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const SLUG: Rule = {
  accepts: (slug) => !UUID.test(slug),
  code: 'invalid_value',
  message: 'must not have the form of a bot_id',
};

const DATA: Rule = {
  accepts: isAddress,
  code: 'data_not_hosted',
  message:
    'a server cannot read files of your machine; import the data into its catalogue with `service-local data import`, and use catalog://NAME',
};
