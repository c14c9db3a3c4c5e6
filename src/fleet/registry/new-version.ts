import { ServiceError, type Problem } from '../../base/errors.ts';
import { bundleHash, codeOf, versionHash, type Bundle } from '../../bots/bundle.ts';
import { parsePointer } from '../../base/parse-pointer.ts';
import type { SourceDocument } from '../../bots/document.ts';
import { fieldsOf } from '../../bots/fields.ts';
import {
  checkHostedSpec,
  invalidSpec,
  readChangedSpec,
  type CheckedSpec,
  type HostedSpec,
  type SentSpec,
  type SpecChanges,
} from '../../bots/hosted.ts';
import type { BotVersionsTable, Db } from '../../storage/tables.ts';
import { openHosted, type CodeLimits } from '../../trading/sandbox/hosted-run.ts';

/** Characters. Parsing a spec of this length takes the thread about a second. */
const LONGEST_SPEC = 128 * 1024;

/** Last parts of paths such as `/bots/schema`, where a path can have the slug of a bot. */
const RESERVED_SLUGS: ReadonlySet<string> = new Set(['new', 'schema', 'templates', 'validate']);

/**
 * Checks a sent spec, and loads its custom strategy once if it has one.
 * @throws ServiceError `invalid_spec`, `payload_too_large`
 */
export async function admitSpec(
  sent: SentSpec,
  limits: CodeLimits | undefined,
): Promise<HostedSpec> {
  const { hosted, problems } = await checkSpec(sent, limits);
  if (hosted === undefined) throw invalidSpec(problems, 'yaml' in sent);
  return hosted;
}

/**
 * Checks the spec of a version with changes and other files, as `admitSpec` does, and returns it.
 * @throws ServiceError as `readChangedSpec` and `admitSpec`.
 */
export async function admitChanges(
  document: unknown,
  changes: SpecChanges,
  files: Bundle,
  limits: CodeLimits | undefined,
): Promise<HostedSpec> {
  const hosted = readChangedSpec(document, changes, files);
  await admitSpec({ document: fieldsOf(hosted.document), files }, limits);
  return hosted;
}

/**
 * Like `admitSpec`, but returns the problems.
 * @throws ServiceError `payload_too_large`
 */
export async function checkSpec(
  sent: SentSpec,
  limits: CodeLimits | undefined,
): Promise<CheckedSpec> {
  const { length } = 'yaml' in sent ? sent.yaml : JSON.stringify(sent.document);
  if (length > LONGEST_SPEC) {
    throw new ServiceError('payload_too_large', `the spec has ${length} characters`, {
      remedy: `Shorten it to at most ${LONGEST_SPEC} characters; bundled files do not count.`,
    });
  }
  const checked = withReservedSlug(checkHostedSpec(sent, limits !== undefined, false));
  const { hosted, document } = checked;
  if (hosted === undefined || codeOf(hosted.files) === undefined) return checked;
  try {
    const { close } = await openHosted({ ...hosted, models: [] }, limits);
    await close();
    return checked;
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { hosted: undefined, problems: codeProblems(error, document), document };
  }
}

function withReservedSlug(checked: CheckedSpec): CheckedSpec {
  const { hosted, document, problems } = checked;
  if (hosted === undefined || !RESERVED_SLUGS.has(hosted.spec.metadata.slug)) return checked;
  const message = 'names a page of the server; choose another slug';
  const problem = document.problem(['metadata', 'slug'], { code: 'invalid_value', message });
  return { hosted: undefined, document, problems: [...problems, problem] };
}

/** Problems of a strategy that does not load, or that does not fit the spec. */
function codeProblems(error: ServiceError, document: SourceDocument): Problem[] {
  const { code, message, remedy = '', problems } = error;
  const at = ['spec', 'strategy', 'module'];
  if (code !== 'invalid_spec')
    return [document.problem(at, { code, message: `${message}; ${remedy}` })];
  // Their positions refer to the spec as JSON.
  return problems.map(({ pointer = '', file: _file, line: _line, column: _column, ...what }) =>
    document.problem(parsePointer(pointer), what),
  );
}

export function hashVersion({ hash, files }: HostedSpec): string {
  return versionHash(hash, files === undefined ? null : bundleHash(files));
}

/**
 * Stores a bundle, once for all bots and tasks that use it.
 * @returns the hash of the bundle.
 */
export async function insertBundle(tx: Db, files: Bundle, created_at: number): Promise<string> {
  const hash = bundleHash(files);
  await tx
    .insertInto('bundles')
    .values({ hash, files: JSON.stringify(files), created_at })
    .onConflict((conflict) => conflict.column('hash').doNothing())
    .execute();
  return hash;
}

/** Adds a version to a bot. */
export async function insertVersion(
  tx: Db,
  hosted: HostedSpec,
  place: Readonly<Pick<BotVersionsTable, 'bot_id' | 'version' | 'created_at' | 'created_by'>>,
): Promise<BotVersionsTable> {
  const { document, files } = hosted;
  const bundle_hash = files === undefined ? null : await insertBundle(tx, files, place.created_at);
  const hash = hashVersion(hosted);
  const version = { ...place, hash, document: JSON.stringify(document), bundle_hash };
  await tx.insertInto('bot_versions').values(version).execute();
  return version;
}
