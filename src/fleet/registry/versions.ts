import { bundleHash, codeOf, CODE_IS_OFF, versionHash, type Bundle } from '../../bots/bundle.ts';
import {
  diffDocuments,
  diffFiles,
  type Change,
  type FileChange,
} from '../../bots/diff-documents.ts';
import { invalidSpec } from '../../bots/hosted.ts';
import { specHash } from '../../bots/spec-lock.ts';
import { ServiceError } from '../../base/errors.ts';
import { readPage, type Page, type PageRequest } from '../../storage/paging.ts';
import type { BotVersionsTable, Db } from '../../storage/tables.ts';
import { getBotId, type BotRegistry } from './bots.ts';
import { readUnsaved } from './unsaved-bundles.ts';

/** A version in a list. Times are milliseconds since the Unix epoch. */
export type BotVersionRow = Readonly<
  Pick<BotVersionsTable, 'version' | 'hash' | 'bundle_hash' | 'created_at' | 'created_by'>
>;

export interface BotVersion extends BotVersionRow {
  /** The spec as its author wrote it, as JSON. */
  readonly document: string;
}

const SUMMARY = ['version', 'hash', 'bundle_hash', 'created_at', 'created_by'] as const;

/**
 * Lists the versions of a bot, newest first.
 * @throws ServiceError `not_found`
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

/** @throws ServiceError `not_found` for the bot or the version. */
export async function getVersion(db: Db, ref: string, version: number): Promise<BotVersion> {
  const bot_id = await getBotId(db, ref);
  const found = await db
    .selectFrom('bot_versions')
    .select([...SUMMARY, 'document'])
    .where('bot_id', '=', bot_id)
    .where('version', '=', version)
    .executeTakeFirst();
  if (found !== undefined) return found;
  throw new ServiceError('not_found', `bot ${ref} has no version ${version}`, {
    remedy: `See \`service-local bots versions ${ref}\`.`,
  });
}

/** Differences between the documents and the bundles of two versions. */
export interface VersionDiff {
  readonly changes: Change[];
  readonly files: FileChange[];
}

/**
 * Compares two versions of a bot. Versions with different hashes always differ.
 * @throws ServiceError `not_found` for the bot or a version; `bundle_tampered`.
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

export interface RunnableVersion {
  /** The spec as its author wrote it. */
  readonly document: unknown;
  /** Custom code and models. */
  readonly files: Bundle | undefined;
}

/**
 * Reads a version and its bundle, and verifies their hash.
 * @param unsaved hash of the bundle to run instead; null to run without files.
 * @throws ServiceError `not_found` for the bot or the version; `bundle_tampered`; `invalid_spec` for
 * custom code on a server that does not run it.
 */
export async function getRunnableVersion(
  { storage: { read }, customCode }: BotRegistry,
  ref: string,
  version: number,
  unsaved?: string | null,
): Promise<RunnableVersion> {
  const found = await getVersion(read, ref, version);
  const files =
    unsaved === undefined ? await readBundle(read, ref, found) : await readUnsaved(read, unsaved);
  if (codeOf(files) !== undefined && customCode === undefined) {
    throw invalidSpec([{ ...CODE_IS_OFF, pointer: '/spec/strategy/module' }], false);
  }
  return { document: JSON.parse(found.document), files };
}

/** @throws ServiceError `bundle_tampered` */
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
  throw new ServiceError(
    'bundle_tampered',
    `version ${version} of bot ${ref} does not match its hash`,
    {
      remedy:
        'Check who can write to the database, then create a new version with `service-local bots apply`.',
    },
  );
}
