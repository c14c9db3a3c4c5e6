import { ServiceError } from '../../base/errors.ts';
import { bundleHash, codeOf, versionHash } from '../../bots/bundle.ts';
import { invalidSpec, readHostedSpec, type HostedSpec, type SentSpec } from '../../bots/hosted.ts';
import type { BotVersionsTable, Db } from '../../storage/tables.ts';
import { openHosted, type CodeLimits } from '../../trading/sandbox/hosted-run.ts';

/** Characters. Parsing a spec of this length takes the thread about a second. */
const LONGEST_SPEC = 128 * 1024;

/**
 * Checks a sent spec, and loads its custom strategy once if it has one.
 * @throws ServiceError `invalid_spec`, `payload_too_large`
 */
export async function admitSpec(
  sent: SentSpec,
  limits: CodeLimits | undefined,
): Promise<HostedSpec> {
  const { length } = 'yaml' in sent ? sent.yaml : JSON.stringify(sent.document);
  if (length > LONGEST_SPEC) {
    throw new ServiceError('payload_too_large', `the spec has ${length} characters`, {
      remedy: `Shorten it to at most ${LONGEST_SPEC} characters; bundled files do not count.`,
    });
  }
  const hosted = readHostedSpec(sent, limits !== undefined, false);
  if (codeOf(hosted.files) === undefined) return hosted;
  try {
    const { close } = await openHosted({ ...hosted, models: [] }, limits);
    await close();
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code === 'invalid_spec') throw error;
    const { code, message, remedy = '' } = error;
    const problem = { code, pointer: '/spec/strategy/module', message: `${message}; ${remedy}` };
    throw invalidSpec([problem], 'yaml' in sent);
  }
  return hosted;
}

export function hashVersion({ hash, files }: HostedSpec): string {
  return versionHash(hash, files === undefined ? null : bundleHash(files));
}

/** Adds a version to a bot. Equal bundles are stored once, even if they belong to different bots. */
export async function insertVersion(
  tx: Db,
  hosted: HostedSpec,
  place: Readonly<Pick<BotVersionsTable, 'bot_id' | 'version' | 'created_at' | 'created_by'>>,
): Promise<BotVersionsTable> {
  const { document, files } = hosted;
  const bundle_hash = files === undefined ? null : bundleHash(files);
  if (bundle_hash !== null) {
    const { created_at } = place;
    await tx
      .insertInto('bundles')
      .values({ hash: bundle_hash, files: JSON.stringify(files), created_at })
      .onConflict((conflict) => conflict.column('hash').doNothing())
      .execute();
  }
  const hash = hashVersion(hosted);
  const version = { ...place, hash, document: JSON.stringify(document), bundle_hash };
  await tx.insertInto('bot_versions').values(version).execute();
  return version;
}
