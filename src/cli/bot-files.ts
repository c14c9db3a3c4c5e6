/** Separate from `bots.ts`, because this loads the parser and the checks of bot files. */
import { createHash } from 'node:crypto';
import { readFileSync, realpathSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { readStrategyFiles } from '../backtest/strategy-module.ts';
import { base64Of, bundleFaults, entryOf, type Bundle } from '../bots/bundle.ts';
import type { SourceDocument } from '../bots/document.ts';
import { fieldsOf } from '../bots/fields.ts';
import { hostedProblems } from '../bots/hosted.ts';
import { modelFiles } from '../bots/load-bot.ts';
import { readModels } from '../bots/model-checks.ts';
import { inOrder, readSpec } from '../bots/parse.ts';
import type { BotSpec } from '../bots/spec.ts';
import { ServiceError, type Problem } from '../base/errors.ts';
import { REQUIRED_LIMIT_NAMES } from '../base/risk-limits.ts';
import { invalidFiles, type BotFile } from './bots.ts';

/**
 * Reads bot files to be sent to a server, with the code of their strategies and their models.
 * @throws ServiceError `invalid_spec` with the problems of all files; `file_not_found`
 */
export async function readHostedFiles(files: readonly string[]): Promise<readonly BotFile[]> {
  const strategies = new Map<string, Attached>();
  for (const file of files) strategies.set(file, await strategyOf(file));
  const bundles = new Map<SourceDocument, BotFile['files']>();
  const read = readBotFiles(files, (source, file, known) => {
    const models = modelsOf(source, file, known);
    const isKnown = known.some(({ pointer }) => pointer?.startsWith('/spec/strategy'));
    const code = isKnown ? { faults: [] } : strategies.get(file)!;
    const bundle = { ...code.files, ...models.files };
    if (Object.keys(bundle).length > 0) bundles.set(source, bundle);
    return [...hostedProblems(source), ...models.faults, ...code.faults];
  });
  return read.map((one) => {
    const bundle = bundles.get(one.source);
    return bundle === undefined ? one : { ...one, files: bundle };
  });
}

interface Attached {
  readonly files?: BotFile['files'];
  readonly faults: readonly Problem[];
}

function modelsOf(source: SourceDocument, file: string, known: readonly Problem[]): Attached {
  const fileOf = modelFiles(dirname(resolve(file)));
  const { models, problems } = readModels(source, fileOf, known);
  const sent = models.map(({ path, bytes }) => [entryOf(path), base64Of(bytes)] as const);
  const files = Object.fromEntries(sent);
  const [message] = bundleFaults(files);
  if (message === undefined) return { files, faults: problems };
  const what = { code: 'model_not_hosted', message };
  return { faults: [...problems, source.problem(['spec', 'ml_models'], what)] };
}

async function strategyOf(file: string): Promise<Attached> {
  const { document } = readSpec(file);
  const { module } = fieldsOf(fieldsOf(fieldsOf(document.value).spec).strategy);
  if (typeof module !== 'string') return { faults: [] };
  try {
    return { files: (await readCode(file, module)).files, faults: [] };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code, message } = error;
    return { faults: [document.problem(MODULE, { code, message })] };
  }
}

const MODULE = ['spec', 'strategy', 'module'];

/**
 * Reads the source files of a user's own strategy: the module and everything that it imports. Runs
 * none of its code.
 *
 * @param file the bot file that names the module.
 * @returns the files and the path of the module among them.
 * @throws ServiceError `invalid_strategy`
 */
export async function readCode(
  file: string,
  module: string,
): Promise<{ readonly files: Bundle; readonly entry: string }> {
  const directory = realpathSync(dirname(resolve(file)));
  const { files, others, entry } = await readStrategyFiles(module, directory);
  if (others.length > 0) {
    throw new ServiceError(
      'invalid_strategy',
      `cannot import ${others.map((name) => `'${name}'`).join(', ')}: a server and its sandbox provide no packages and no Node modules. Copy the code you need into a file next to the strategy`,
    );
  }
  const texts = Object.entries(files).map(([path, sha256]): [string, string] => {
    if (path.startsWith('..')) {
      throw new ServiceError('invalid_strategy', `${path} is not below the directory of ${file}`);
    }
    const bytes = readFileSync(join(directory, path));
    const text = bytes.toString();
    if (createHash('sha256').update(text).digest('hex') !== sha256) {
      throw new ServiceError('invalid_strategy', `${path} is not UTF-8, or has just changed`);
    }
    return [path, text];
  });
  const bundle = Object.fromEntries(texts);
  const fault = bundleFaults(bundle)[0];
  if (fault !== undefined) throw new ServiceError('invalid_strategy', fault);
  return { files: bundle, entry };
}

/**
 * Reads any bot files without their strategies and data.
 * @param check finds more problems than the known ones.
 * @throws ServiceError `invalid_spec` with the problems of all files; `file_not_found`
 */
export function readBotFiles(
  files: readonly string[],
  check: (
    document: SourceDocument,
    file: string,
    known: readonly Problem[],
  ) => readonly Problem[] = () => [],
): readonly BotFile[] {
  const read = files.map((file) => {
    const { spec, document, problems } = readSpec(file);
    return {
      file,
      spec,
      document,
      problems: inOrder([...problems, ...check(document, file, problems)]),
    };
  });
  const wrong = read.filter(({ problems }) => problems.length > 0);
  if (wrong.length > 0) {
    throw invalidFiles(
      wrong.map(({ file }) => file),
      wrong.flatMap(({ problems }) => problems),
    );
  }
  return read.map(({ file, spec, document }) => ({
    file,
    slug: spec!.metadata.slug,
    document: document.value as BotFile['document'],
    source: document,
    notes: notesOn(spec!),
  }));
}

function notesOn(spec: BotSpec): string[] {
  if (spec.spec.kind === 'research') return [];
  const missing = REQUIRED_LIMIT_NAMES.filter((name) => spec.spec.risk?.[name] === undefined);
  if (missing.length === 0) return [];
  return [
    `before it can trade on paper or in production, spec.risk needs a value or {unlimited: "reason"} for each of ${missing.join(', ')}`,
  ];
}
