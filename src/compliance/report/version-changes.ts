/** Versions of a bot, and what each changed. */
import { diffDocuments } from '../../bots/diff-documents.ts';
import type { BotSpec } from '../../bots/spec.ts';
import { ITEM_FIELDS } from '../../base/validation-report-fields.ts';
import type { Db } from '../../storage/tables.ts';
import { composeFields, figure } from './report-fields.ts';
import { formatInstant } from './period.ts';
import { cutList, MOST_LISTED, nameActors } from './report-values.ts';
import type { VersionChange } from './validation-report.ts';

type Spec = BotSpec['spec'];

/** A stored bot document, which may be older than the schema. */
export interface Document {
  readonly metadata?: Partial<BotSpec['metadata']>;
  readonly spec: Partial<Pick<Spec, 'ml_models' | 'agents'>> & {
    readonly [N in 'universe' | 'data' | 'strategy' | 'attribution']?: Partial<Spec[N]>;
  } & { readonly risk?: Readonly<Record<string, unknown>> };
}

export function getStrategyName({ strategy }: Document['spec']): string | null {
  return strategy?.name ?? strategy?.module ?? null;
}

/** Lists the newest versions created before a time (ms since epoch), oldest first. */
export async function listVersions(db: Db, bot_id: string, before: number) {
  const rows = await db
    .selectFrom('bot_versions')
    .select(['version', 'hash', 'bundle_hash', 'document', 'created_at', 'created_by'])
    .where('bot_id', '=', bot_id)
    .where('created_at', '<', before)
    .orderBy('version', 'desc')
    .limit(MOST_LISTED + 1)
    .execute();
  const named = await nameActors(db, rows.toReversed(), 'created_by');
  const versions = named.map((row) => ({ ...row, document: JSON.parse(row.document) as Document }));
  return versions.map((version, i) => {
    const { document, bundle_hash } = versions[i - 1] ?? version;
    return {
      ...version,
      /** Differences from the previous version; empty for the first one. */
      changes: diffDocuments(document, version.document),
      isCodeChanged: bundle_hash !== version.bundle_hash,
    };
  });
}

export type Version = Awaited<ReturnType<typeof listVersions>>[number];

/** Drafts the list of operators from the authors of versions; null without versions. */
export function draftOperators(versions: readonly Version[]): string | null {
  const names = new Set(versions.map(({ created_by }) => created_by));
  return names.size === 0 ? null : `Authors of its versions: ${[...names].join(', ')}.`;
}

/** Returns an id such as `v3`; a bare number could be mistaken for a list index. */
export function toChangeId({ version }: Version): string {
  return `v${version}`;
}

/** JSON pointers to the parts of a spec that decide how a bot trades and within which limits. */
const MATERIAL = /^\/spec\/(strategy|risk|universe|data|engine|ml_models|agents|deployment)(\/|$)/;

/** Records the four facts that Article 5(7) requires of a version; only people know the approver. */
export function describeChange(bot_id: string, version: Version): VersionChange {
  const { changes, isCodeChanged, created_at, created_by, hash, bundle_hash } = version;
  const params = { bot_id, version: version.version };
  const facts = figure('bot.versions', params, {
    when: formatInstant(created_at),
    made_by: created_by,
    hash,
    bundle_hash,
    is_first: version.version === 1,
    is_code_changed: isCodeChanged,
    nature: cutList(changes),
  });
  const material = draftMaterial(version);
  return { id: toChangeId(version), ...composeFields(ITEM_FIELDS.changes, { facts, material }) };
}

function draftMaterial({ version, changes, isCodeChanged }: Version): string {
  if (version === 1) return 'This is the first version; review all of it.';
  const places = changes.map(({ pointer }) => pointer).filter((pointer) => MATERIAL.test(pointer));
  const what = [...places, ...(isCodeChanged ? ['the code of the strategy'] : [])];
  if (what.length === 0) return 'This version changes nothing that decides how the bot trades.';
  return `Probably: this version changes ${what.slice(0, 10).join(', ')}.`;
}

export function listLimitChanges(versions: readonly Version[]) {
  return cutList(
    versions.flatMap(({ version, created_at, created_by, changes }) =>
      changes
        .filter(({ pointer }) => /^\/spec\/risk(\/|$)/.test(pointer))
        .map((change) => ({ when: formatInstant(created_at), by: created_by, version, ...change })),
    ),
  );
}
