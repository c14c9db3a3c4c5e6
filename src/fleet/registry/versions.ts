import { bundleHash, codeOf, CODE_IS_OFF, versionHash, type Bundle } from '../../bots/bundle.ts';
import { diffDocuments, diffFiles, type Change, type FileChange } from '../../bots/diff.ts';
import { invalidSpec } from '../../bots/hosted.ts';
import { specHash } from '../../bots/version.ts';
import { ServiceError } from '../../base/errors.ts';
import { readPage, type Page, type PageRequest } from '../../storage/paging.ts';
import type { BotVersionsTable, Db } from '../../storage/tables.ts';
import { getBotId, type BotRegistry } from './bots.ts';

/** What lists show of a version. Times are milliseconds since the Unix epoch. */
export type BotVersionRow = Readonly<
  Pick<BotVersionsTable, 'version' | 'hash' | 'bundle_hash' | 'created_at' | 'created_by'>
>;

export interface BotVersion extends BotVersionRow {
  /** JSON: the spec as its author wrote it. */
  readonly document: string;
}

const SUMMARY = ['version', 'hash', 'bundle_hash', 'created_at', 'created_by'] as const;

/**
 * The versions of a bot, the newest first.
 * @throws ServiceError `not_found`; `invalid_request` for a cursor of another list.
 */
export async function listVersions(
  db: Db,
  ref: string,
  request: PageRequest,
): Promise<Page<BotVersionRow>> {
  const bot_id = await getBotId(db, ref);
  return readPage(
    ['versions', bot_id],
    request,
    ({ version }) => String(version),
    async (after, limit) => {
      const query = db
        .selectFrom('bot_versions')
        .select(SUMMARY)
        .where('bot_id', '=', bot_id)
        .orderBy('version', 'desc')
        .limit(limit);
      return (after === undefined ? query : query.where('version', '<', Number(after))).execute();
    },
  );
}

/** @throws ServiceError `not_found` for the bot, or the version. */
export async function getVersion(db: Db, ref: string, version: number): Promise<BotVersion> {
  const bot_id = await getBotId(db, ref);
  const found = await db
    .selectFrom('bot_versions')
    .select([...SUMMARY, 'document'])
    .where('bot_id', '=', bot_id)
    .where('version', '=', version)
    .executeTakeFirst();
  if (found !== undefined) return found;
  throw new ServiceError('not_found', `the bot ${ref} has no version ${version}`, {
    remedy: `See \`service-local bots versions ${ref}\`.`,
  });
}

/** What differs between two versions: their documents, and the code that came with them. */
export interface VersionDiff {
  readonly changes: Change[];
  readonly files: FileChange[];
}

/**
 * What differs between two versions of a bot: something, where their hashes do.
 * @throws ServiceError `not_found` for the bot, or a version; `bundle_tampered`.
 */
export async function diffVersions(
  db: Db,
  ref: string,
  from: number,
  to: number,
): Promise<VersionDiff> {
  const before = await getVersion(db, ref, from);
  const after = await getVersion(db, ref, to);
  const isSameCode = before.bundle_hash === after.bundle_hash;
  return {
    changes: diffDocuments(JSON.parse(before.document), JSON.parse(after.document)),
    files: isSameCode
      ? []
      : diffFiles(await readBundle(db, ref, before), await readBundle(db, ref, after)),
  };
}

/** A version that is to run: as it was when it was made. */
export interface RunnableVersion {
  /** As authored. */
  readonly document: unknown;
  /** Code and models that came with it. */
  readonly files: Bundle | undefined;
}

/**
 * A version with its code, once both are found to have the hash that the version has.
 * @throws ServiceError `not_found` for the bot, or the version; `bundle_tampered`; `invalid_spec` where
 * the server runs no code but its own.
 */
export async function getRunnableVersion(
  { storage: { read }, customCode }: BotRegistry,
  ref: string,
  version: number,
): Promise<RunnableVersion> {
  const found = await getVersion(read, ref, version);
  const files = await readBundle(read, ref, found);
  if (codeOf(files) !== undefined && customCode === undefined) {
    throw invalidSpec([{ ...CODE_IS_OFF, pointer: '/spec/strategy/module' }], false);
  }
  return { document: JSON.parse(found.document), files };
}

/**
 * What came with a version; undefined where nothing did.
 * @throws ServiceError `bundle_tampered`
 */
export async function readBundle(
  db: Db,
  ref: string,
  { version, document, hash, bundle_hash }: BotVersion,
): Promise<Bundle | undefined> {
  if (bundle_hash === null) return undefined;
  const row = await db
    .selectFrom('bundles')
    .select('files')
    .where('hash', '=', bundle_hash)
    .executeTakeFirst();
  const files = row && (JSON.parse(row.files) as Bundle);
  const isWhole =
    files !== undefined &&
    bundleHash(files) === bundle_hash &&
    versionHash(specHash(JSON.parse(document)), bundle_hash) === hash;
  if (isWhole) return files;
  throw new ServiceError('bundle_tampered', `version ${version} of ${ref} is not as it was made`, {
    remedy: 'Find out who can write to the database, and make a new version of the bot.',
  });
}
