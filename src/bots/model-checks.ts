import { closest } from '../base/closest.ts';
import { ServiceError, type Problem } from '../base/errors.ts';
import {
  featureFaults,
  FEATURE_COLUMNS,
  INDICATOR_NAMES,
  type Feature,
} from './models/features.ts';
import {
  digestOf,
  readModel,
  type Model,
  type ModelFault,
  type ModelSpec,
} from './models/model.ts';
import { openModel } from './models/runtime.ts';
import { optional, type Path, type SourceDocument } from './document.ts';
import { fieldsOf, isFields, listOf } from './fields.ts';
import { mlModelSchema, MOST_MODELS } from './model-schema.ts';

const MODELS: Path = ['spec', 'ml_models'];

/** Checks that the schema cannot express; parts of the wrong type are skipped. */
export function modelProblems(models: readonly unknown[], document: SourceDocument): Problem[] {
  const names = models.map((model, at) => [[at, 'name'], fieldsOf(model).name] as const);
  const outputs = models.flatMap((model, at) =>
    listOf(fieldsOf(model).outputs).map(
      (output, place) => [[at, 'outputs', place, 'name'], fieldsOf(output).name] as const,
    ),
  );
  return [
    ...repeated(names, 'duplicate name: another model has it', document),
    ...repeated(outputs, 'duplicate name: another output has it', document),
    ...models.flatMap((model, at) =>
      listOf(fieldsOf(model).inputs).flatMap((input, place) =>
        inputProblems(input, [...MODELS, at, 'inputs', place], document),
      ),
    ),
  ];
}

function repeated(
  names: readonly (readonly [at: Path, name: unknown])[],
  message: string,
  document: SourceDocument,
): Problem[] {
  const seen = new Set<unknown>();
  return names.flatMap(([at, name]) => {
    if (typeof name !== 'string' || !seen.has(name)) {
      seen.add(name);
      return [];
    }
    return [document.problem([...MODELS, ...at], { code: 'duplicate_value', message })];
  });
}

function inputProblems(input: unknown, at: Path, document: SourceDocument): Problem[] {
  if (!isWellTyped(input)) return [];
  return featureFaults(input).map(({ at: within, code, message, known }) => {
    const name = String(within.at(-1));
    const meant = code === 'unknown_field' ? name : String(fieldsOf(input)[name]);
    const near = known === undefined ? undefined : closest(meant, known);
    const what = { code, message, ...optional(near) };
    return document.problem([...at, ...within], what, code === 'unknown_field' ? 'key' : 'value');
  });
}

function isWellTyped(input: unknown): input is Feature {
  if (!isFields(input)) return false;
  const { column, indicator, params = {}, of, line, over, ...others } = input;
  const isOneOf = (value: unknown, known: readonly string[]): boolean =>
    value === undefined || (typeof value === 'string' && known.includes(value));
  return (
    Object.keys(others).length === 0 &&
    [column, of, over].every((value) => isOneOf(value, FEATURE_COLUMNS)) &&
    isOneOf(indicator, INDICATOR_NAMES) &&
    (line === undefined || typeof line === 'string') &&
    isFields(params) &&
    Object.values(params).every((value) => typeof value === 'number' && value <= 10_000)
  );
}

/** Reads a model file; returns its bytes or a problem. */
export type FileOf = (
  path: string,
) => Uint8Array | Pick<Problem, 'code' | 'message' | 'suggestion'>;

export interface ReadModels {
  readonly models: readonly Model[];
  readonly problems: readonly Problem[];
}

/** Numbers that the inputs of all models keep for all symbols, about 100 MB. */
const MOST_KEPT = 10_000_000;
/** Estimate per input, added to the sum of its parameters, which are mostly periods in bars. */
const KEPT_OF_INPUT = 50;
/** Outputs times symbols. */
const MOST_SIGNALS = 20_000;

function excesses(models: readonly ModelSpec[], document: SourceDocument): Problem[] {
  const { universe } = fieldsOf(fieldsOf(document.value).spec);
  const symbols = listOf(fieldsOf(universe).symbols).length;
  const inputs = models.flatMap((model) => model.inputs);
  const kept = inputs.flatMap(({ params = {} }) => [KEPT_OF_INPUT, ...Object.values(params)]);
  const outputs = models.reduce((sum, model) => sum + model.outputs.length, 0);
  const tooMany = (message: string): Problem =>
    document.problem(MODELS, { code: 'invalid_value', message });
  const values = kept.reduce((sum, each) => sum + each, 0) * symbols;
  return [
    ...(values > MOST_KEPT
      ? [
          tooMany(
            `the inputs keep about ${values} numbers for ${symbols} symbols; at most ${MOST_KEPT} are allowed`,
          ),
        ]
      : []),
    ...(outputs * symbols > MOST_SIGNALS
      ? [
          tooMany(
            `${outputs} outputs for ${symbols} symbols make ${outputs * symbols} signals; at most ${MOST_SIGNALS} are allowed`,
          ),
        ]
      : []),
  ];
}

/**
 * Reads the models of a spec and their files without running them.
 *
 * @param known problems of the spec; for a model with a problem, only the existence of its file is
 *   checked.
 */
export function readModels(
  document: SourceDocument,
  fileOf: FileOf,
  known: readonly Problem[] = [],
): ReadModels {
  const models: Model[] = [];
  const specs: ModelSpec[] = [];
  const problems: Problem[] = [];
  const faulty = new Set(
    known.map(({ pointer = '' }) => /^\/spec\/ml_models\/(\d+)/.exec(pointer)?.[1]),
  );
  const all = listOf(fieldsOf(fieldsOf(document.value).spec).ml_models).slice(0, MOST_MODELS);
  for (const [at, authored] of all.entries()) {
    const spec = faulty.has(String(at)) ? undefined : mlModelSchema.safeParse(authored).data;
    const path = fieldsOf(authored).path;
    const file = typeof path === 'string' && path !== '' ? fileOf(path) : undefined;
    if (file !== undefined && !(file instanceof Uint8Array)) {
      problems.push(document.problem([...MODELS, at, 'path'], file));
    }
    if (spec === undefined) continue;
    specs.push(spec);
    if (!(file instanceof Uint8Array)) continue;
    const read = readModel(spec, file);
    if ('bytes' in read) models.push(read);
    else problems.push(...read.map((fault) => faultProblem(fault, at, document)));
  }
  return { models, problems: [...excesses(specs, document), ...problems] };
}

function faultProblem(
  { at: within, code, message, suggestion }: ModelFault,
  at: number,
  document: SourceDocument,
): Problem {
  const what = { code, message, ...optional(suggestion) };
  return document.problem([...MODELS, at, ...within], what);
}

/** Suggests the digest of the file where the spec has none or an invalid one. */
export function withDigests(
  problems: readonly Problem[],
  document: SourceDocument,
  fileOf: FileOf,
): readonly Problem[] {
  return problems.map((problem) => {
    const [, at] = /^\/spec\/ml_models\/(\d+)\/digest$/.exec(problem.pointer ?? '') ?? [];
    if (at === undefined) return problem;
    const { path } = fieldsOf(
      listOf(fieldsOf(fieldsOf(document.value).spec).ml_models)[Number(at)],
    );
    const file = typeof path === 'string' ? fileOf(path) : undefined;
    return file instanceof Uint8Array ? { ...problem, suggestion: digestOf(file) } : problem;
  });
}

/**
 * Runs each model once and returns a problem for each that fails.
 * @throws ServiceError `failure` if the runtime is not installed.
 */
export async function triedModels(
  models: readonly Model[],
  document: SourceDocument,
): Promise<Problem[]> {
  const authored = listOf(fieldsOf(fieldsOf(document.value).spec).ml_models);
  const problems: Problem[] = [];
  for (const model of models) {
    try {
      const { close } = await openModel(model);
      await close();
    } catch (error) {
      if (!(error instanceof ServiceError && error.reason === 'invalid_model')) throw error;
      const what = { code: error.reason, message: error.message };
      const at = authored.findIndex((one) => fieldsOf(one).name === model.name);
      problems.push(document.problem([...MODELS, at, 'path'], what));
    }
  }
  return problems;
}
