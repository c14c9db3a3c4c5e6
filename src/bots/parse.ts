import { isUtf8 } from 'node:buffer';
import { existsSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { ServiceError, type Problem } from '../base/errors.ts';
import { crossChecks } from './cross-checks.ts';
import { parseDocument, type SourceDocument } from './document.ts';
import { problemsOfIssues } from './issues.ts';
import { nameProblems } from './names.ts';
import { botSpecSchema, type BotSpec } from './spec.ts';

export interface ParsedSpec {
  /** The document with its defaults filled in; `undefined` if there are problems. */
  readonly spec: BotSpec | undefined;
  /** The text as data, without defaults. */
  readonly document: SourceDocument;
  /** In the order of the text. */
  readonly problems: readonly Problem[];
}

/** About a thousand times the usual size. */
const MAX_BYTES = 1_048_576;

/**
 * Parses and checks a spec in YAML or JSON. Does not throw.
 * @param file name of the text in problems.
 * @param isStored whether a server accepted the spec before; see `nameProblems`.
 */
export function parseSpec(text: string, file: string, isStored = false): ParsedSpec {
  const document = parseDocument(text, file);
  if (document.value === undefined) {
    const empty = document.problem([], {
      code: 'empty_file',
      message: 'the file is empty; `service-local init` creates a bot',
    });
    const problems = document.problems.length > 0 ? document.problems : [empty];
    return { spec: undefined, document, problems: inOrder(problems) };
  }
  const parsed = botSpecSchema.safeParse(document.value);
  const issues = parsed.error?.issues ?? [];
  const problems = [
    ...document.problems,
    ...problemsOfIssues(issues, botSpecSchema, document),
    ...crossChecks(document),
    ...(isStored ? [] : nameProblems(document)),
  ];
  return {
    spec: problems.length === 0 ? parsed.data : undefined,
    document,
    problems: inOrder(withoutEchoes(problems)),
  };
}

/** @throws ServiceError `file_not_found` if the file cannot be read; other faults are problems. */
export function readSpec(file: string): ParsedSpec {
  const bytes = readBytes(file);
  if (DATA_FILE.test(file)) {
    const message = `this is a data file, not a bot file: import it with \`service-local data import ${file}\`, or name it in data.source of a bot file`;
    return unreadable(file, 'not_a_bot', message);
  }
  if (STRATEGY_FILE.test(file)) {
    const message = `this is the code of a strategy, not a bot file: name it in strategy.module of a bot file beside it, \`strategy: { module: ./${basename(file)} }\``;
    return unreadable(file, 'not_a_bot', message);
  }
  if (typeof bytes === 'string') return unreadable(file, 'file_too_large', bytes);
  if (!isUtf8(bytes)) {
    return unreadable(
      file,
      'not_utf8',
      'the file is not UTF-8 text',
      new TextDecoder().decode(bytes),
    );
  }
  return parseSpec(new TextDecoder().decode(bytes), file);
}

/** Names of files that hold bars. */
const DATA_FILE = /\.(csv|csv\.gz|parquet)$/i;

/** Names of files that hold code. */
const STRATEGY_FILE = /\.[cm]?[jt]s$/i;

/** Extensions of bot files. */
const EXTENSIONS = ['.yaml', '.yml', '.json'];

function readBytes(file: string): Uint8Array | string {
  try {
    const stats = statSync(file);
    if (stats.isDirectory()) throw directoryError(file);
    const { size } = stats;
    return size > MAX_BYTES
      ? `the file has ${size} bytes; a bot file may have at most ${MAX_BYTES}`
      : readFileSync(file);
  } catch (cause) {
    if (cause instanceof ServiceError) throw cause;
    const reason = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause);
    const meant = EXTENSIONS.map((extension) => file.replace(/\.\w+$/, '') + extension).find(
      (path) => path !== file && existsSync(path),
    );
    throw new ServiceError('file_not_found', `cannot read ${file} (${reason})`, {
      remedy: meant
        ? `Did you mean ${meant}?`
        : 'Give the path of a bot file; `service-local init my-bot` creates one.',
      cause,
    });
  }
}

function directoryError(directory: string): ServiceError {
  const file = join(directory, 'bot.yaml');
  return new ServiceError('file_not_found', `${directory} is a directory, not a bot file`, {
    remedy: existsSync(file)
      ? `Did you mean ${file}?`
      : 'Give the path of a bot file; `service-local init my-bot` creates one.',
  });
}

/** Result with a single problem, located at the first damaged character if the text has one. */
function unreadable(file: string, code: string, message: string, damaged = ''): ParsedSpec {
  const before = damaged.slice(0, Math.max(damaged.indexOf('\uFFFD'), 0)).split('\n');
  const place = { file, line: before.length, column: before.at(-1)!.length + 1 };
  return {
    spec: undefined,
    document: parseDocument('', file),
    problems: [{ ...place, code, message }],
  };
}

/**
 * Removes problems that follow from others: a field that is missing because its name is misspelled,
 * and every problem of a value but the first.
 */
export function withoutEchoes(problems: readonly Problem[]): Problem[] {
  const suggested = new Set(
    problems
      .filter(({ code }) => code === 'unknown_field' || code === 'unknown_symbol')
      .map(({ pointer, suggestion }) => pointer?.replace(/[^/]*$/, suggestion ?? '')),
  );
  const reported = new Set<string | undefined>();
  return problems.filter(({ code, pointer }) => {
    if (pointer === undefined) return true;
    if (reported.has(pointer) || (code === 'missing_field' && suggested.has(pointer))) return false;
    reported.add(pointer);
    return true;
  });
}

/** Sorts problems in the order of the text. */
export function inOrder(problems: readonly Problem[]): Problem[] {
  return problems.toSorted(
    (a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0),
  );
}
