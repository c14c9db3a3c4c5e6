/**
 * The bots that a server keeps. A bot has a name and a slug, as its current version says, and goes
 * from draft to active and archived. Each change is in its events, by which it was made and by whom,
 * in the same write. Nothing is ever deleted. Times are milliseconds since the Unix epoch.
 */
import { sql, type RawBuilder, type SqlBool } from 'kysely';
import { v7 as uuidv7 } from 'uuid';
import { bundleHash, codeOf, versionHash } from '../../bots/bundle.ts';
import { invalidSpec, readHostedSpec, type HostedSpec, type SentSpec } from '../../bots/hosted.ts';
import { ServiceError } from '../../base/errors.ts';
import { appendEvents } from '../../events/append.ts';
import { NO_EVENTS, type NewEvent } from '../../events/event.ts';
import type { StateEvent } from '../../events/state.ts';
import { openHosted, type CodeLimits } from '../../trading/sandbox/hosted.ts';
import { readPage, type Page, type PageRequest } from '../../storage/paging.ts';
import type { Storage } from '../../storage/storage.ts';
import type { BotsTable, BotVersionsTable, Db } from '../../storage/tables.ts';

/** What the registry of bots works with. */
export interface BotRegistry {
  readonly storage: Storage;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
  /** Undefined where only built-in strategies are taken. */
  readonly customCode?: CodeLimits | undefined;
}

/** What lists show of a bot. */
export type BotRow = Readonly<
  Pick<BotsTable, 'bot_id' | 'name' | 'slug' | 'kind' | 'status' | 'current_version'>
>;

/** A bot with its current version. */
export interface Bot extends BotRow {
  readonly created_at: number;
  readonly updated_at: number;
  /** JSON: the spec as its author wrote it. */
  readonly document: string;
  /** See `specHash`. */
  readonly version_hash: string;
}

/** Stands for version and status of a bot, as an `ETag` (RFC 9110). */
export function formatEtag({ bot_id, current_version, version_hash, status }: Bot): string {
  return `"${bot_id}.${current_version}.${version_hash}.${status}"`;
}

/** Says of a bot's tag whether it is one that the caller knows; undefined when he named none. */
export type EtagMatch = ((tag: string) => boolean) | undefined;

/**
 * Makes a bot, a draft at version 1.
 *
 * @param by who does it, as in the audit log: `administrator:…`.
 * @throws ServiceError `invalid_spec`, `conflict` when another bot has the slug.
 */
export async function createBot(
  { storage, clock, customCode }: BotRegistry,
  by: string,
  sent: SentSpec,
): Promise<Bot> {
  const hosted = await admit(sent, customCode);
  const { metadata, spec } = hosted.spec;
  return storage.write(async (tx) => {
    const now = clock();
    const { slug, name } = metadata;
    await refuseTaken(tx, slug);
    const bot = {
      bot_id: uuidv7({ msecs: now }),
      slug,
      name,
      kind: spec.kind,
      status: 'draft',
      current_version: 1,
      created_at: now,
      updated_at: now,
    } as const;
    await tx
      .insertInto('bots')
      .values({ ...bot, ...NO_EVENTS })
      .execute();
    const version = versionOf(hosted, { bot_id: bot.bot_id, version: 1, now, by });
    await keepFiles(tx, hosted, now);
    await tx.insertInto('bot_versions').values(version).execute();
    const { hash } = version;
    const { kind } = bot;
    const place = { version: 1, occurred_at: now };
    await append(tx, bot.bot_id, now, [
      { kind: 'bot.created', ...place, payload: { slug, name, kind, by } },
      { kind: 'version.created', ...place, payload: { hash, by } },
    ]);
    return { ...bot, document: version.document, version_hash: hash };
  });
}

/**
 * Gives a bot a new version. A document with the hash of the current one makes none. An archived bot
 * becomes active.
 *
 * @throws ServiceError `not_found`, `precondition_required`, `stale`, `invalid_spec`; `conflict` when
 * another bot has the slug.
 */
export async function updateBot(
  { storage, clock, customCode }: BotRegistry,
  by: string,
  ref: string,
  matches: EtagMatch,
  sent: SentSpec,
): Promise<Bot> {
  const hosted = await admit(sent, customCode);
  const hash = hashOf(hosted);
  return storage.write(async (tx) => {
    const bot = await getBot(tx, ref);
    requireMatch(bot, matches);
    const { bot_id } = bot;
    const isNew = hash !== bot.version_hash;
    if (!isNew && bot.status !== 'archived') return bot;

    const now = clock();
    const current_version = bot.current_version + (isNew ? 1 : 0);
    const place = { version: current_version, occurred_at: now };
    const events: (StateEvent & NewEvent)[] = [];
    if (bot.status === 'archived') {
      events.push({ kind: 'bot.activated', ...place, payload: { by } });
    }
    const { name, slug } = hosted.spec.metadata;
    if (isNew) {
      if (hosted.spec.spec.kind !== bot.kind) throw otherKind(bot, sent);
      if (slug !== bot.slug) await refuseTaken(tx, slug);
      const renamed = {
        ...(name !== bot.name && { name }),
        ...(slug !== bot.slug && { slug }),
      };
      if (Object.keys(renamed).length > 0) {
        events.push({ kind: 'bot.updated', ...place, payload: { ...renamed, by } });
      }
      const version = versionOf(hosted, { bot_id, version: current_version, now, by });
      await keepFiles(tx, hosted, now);
      await tx.insertInto('bot_versions').values(version).execute();
      events.push({ kind: 'version.created', ...place, payload: { hash, by } });
    }
    const status = bot.status === 'archived' ? 'active' : bot.status;
    const changes = { name, slug, status, current_version, updated_at: now };
    await tx.updateTable('bots').set(changes).where('bot_id', '=', bot_id).execute();
    await append(tx, bot_id, now, events);
    const document = isNew ? JSON.stringify(hosted.document) : bot.document;
    return { ...bot, ...changes, document, version_hash: hash };
  });
}

/**
 * Puts a bot away. Doing it again does nothing, whatever the tag.
 * @throws ServiceError `not_found`, `precondition_required`, `stale`; `conflict` while it is deployed.
 */
export async function archiveBot(
  { storage, clock }: BotRegistry,
  by: string,
  ref: string,
  matches: EtagMatch,
): Promise<void> {
  await storage.write(async (tx) => {
    const bot = await getBot(tx, ref);
    if (matches !== undefined && bot.status === 'archived') return;
    requireMatch(bot, matches);
    const { bot_id, current_version: version } = bot;
    await refuseDeployed(tx, bot);
    const now = clock();
    const changes = { status: 'archived', updated_at: now } as const;
    await tx.updateTable('bots').set(changes).where('bot_id', '=', bot_id).execute();
    await append(tx, bot_id, now, [
      { kind: 'bot.archived', version, occurred_at: now, payload: { by } },
    ]);
  });
}

/**
 * Makes a draft active, as its first deployment does; does nothing to another bot.
 * @throws ServiceError `conflict` for an archived one.
 */
export async function activateDraft(
  tx: Db,
  { bot_id, slug, status, current_version: version }: BotRow,
  by: string,
  now: number,
): Promise<void> {
  if (status === 'archived') {
    throw new ServiceError('conflict', `the bot ${slug} is archived`, {
      reason: 'archived',
      remedy: 'Make it active with `service-local bots apply`, or an update.',
    });
  }
  if (status === 'active') return;
  const changes = { status: 'active', updated_at: now } as const;
  await tx.updateTable('bots').set(changes).where('bot_id', '=', bot_id).execute();
  await append(tx, bot_id, now, [
    { kind: 'bot.activated', version, occurred_at: now, payload: { by } },
  ]);
}

/** Only what the state of a bot is made of. */
async function append(
  tx: Db,
  bot_id: string,
  now: number,
  events: readonly (StateEvent & NewEvent)[],
): Promise<void> {
  await appendEvents(tx, bot_id, now, events);
}

/** In characters. To read one takes a second of the thread, and requests with models are larger. */
const LONGEST_SPEC = 128 * 1024;

/**
 * A spec that the server takes, whose strategy has been loaded, where it is one of its own.
 * @throws ServiceError `invalid_spec`, `payload_too_large`
 */
async function admit(sent: SentSpec, limits: CodeLimits | undefined): Promise<HostedSpec> {
  const { length } = 'yaml' in sent ? sent.yaml : JSON.stringify(sent.document);
  if (length > LONGEST_SPEC) {
    throw new ServiceError('payload_too_large', `the spec has ${length} characters`, {
      remedy: `One has at most ${LONGEST_SPEC}, besides the files that go with it.`,
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

function hashOf({ hash, files }: HostedSpec): string {
  return versionHash(hash, files === undefined ? null : bundleHash(files));
}

/** The same files are kept once, whosever they are. */
async function keepFiles(tx: Db, { files }: HostedSpec, created_at: number): Promise<void> {
  if (files === undefined) return;
  const row = { hash: bundleHash(files), files: JSON.stringify(files), created_at };
  await tx
    .insertInto('bundles')
    .values(row)
    .onConflict((conflict) => conflict.column('hash').doNothing())
    .execute();
}

function versionOf(
  hosted: HostedSpec,
  { bot_id, version, now, by }: Record<'bot_id' | 'by', string> & Record<'version' | 'now', number>,
): BotVersionsTable {
  const { document, files } = hosted;
  return {
    bot_id,
    version,
    hash: hashOf(hosted),
    document: JSON.stringify(document),
    created_at: now,
    created_by: by,
    bundle_hash: files === undefined ? null : bundleHash(files),
  };
}

/** @throws ServiceError `conflict` */
async function refuseTaken(tx: Db, slug: string): Promise<void> {
  const holder = await tx
    .selectFrom('bots')
    .select(['bot_id', 'status'])
    .where('slug', '=', slug)
    .executeTakeFirst();
  if (holder === undefined) return;
  const what = holder.status === 'archived' ? 'an archived bot' : 'a bot';
  throw new ServiceError('conflict', `there already is ${what} ${slug}, ${holder.bot_id}`, {
    reason: 'slug_taken',
    remedy: 'Update that one, or give this one another slug.',
  });
}

/** @throws ServiceError `conflict` */
async function refuseDeployed(tx: Db, { bot_id, slug }: BotRow): Promise<void> {
  const deployment = await tx
    .selectFrom('bot_deployments')
    .select(['target', 'task_id'])
    .where('bot_id', '=', bot_id)
    .where('status', 'in', ['pending', 'running'])
    .executeTakeFirst();
  if (deployment === undefined) return;
  const { target, task_id } = deployment;
  throw new ServiceError('conflict', `a ${target} of the bot ${slug} is under way`, {
    reason: 'deployment_active',
    remedy: `Wait for its end, or end it with \`service-local tasks cancel ${task_id}\`.`,
  });
}

/** @throws ServiceError `precondition_required`, `stale` */
function requireMatch(bot: Bot, matches: EtagMatch): void {
  if (matches === undefined) {
    throw new ServiceError('precondition_required', 'the request does not say what it changes', {
      remedy: 'Send the ETag of the bot, as you have read it, as If-Match.',
    });
  }
  const tag = formatEtag(bot);
  if (matches(tag)) return;
  throw new ServiceError('stale', `the bot ${bot.slug} has been changed: it is ${tag} by now`, {
    remedy: 'Read it again, and see whether your change still fits.',
  });
}

function otherKind({ slug, kind }: Bot, sent: SentSpec): ServiceError {
  const message = `must be ${kind}: a bot keeps its kind, and ${slug} is one of these`;
  const problem = { code: 'invalid_value', pointer: '/spec/kind', message, suggestion: kind };
  return invalidSpec([problem], 'yaml' in sent);
}

const BOT_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * @param ref its `bot_id` or its slug, which never has the form of an id.
 * @throws ServiceError `not_found`
 */
export async function getBot(db: Db, ref: string): Promise<Bot> {
  const bot = await db
    .selectFrom('bots')
    .innerJoin('bot_versions', (join) =>
      join
        .onRef('bot_versions.bot_id', '=', 'bots.bot_id')
        .onRef('bot_versions.version', '=', 'bots.current_version'),
    )
    .select(SUMMARY)
    .select(['bots.created_at', 'bots.updated_at', 'document', 'hash as version_hash'])
    .where(BOT_ID.test(ref) ? 'bots.bot_id' : 'slug', '=', ref)
    .executeTakeFirst();
  if (bot !== undefined) return bot;
  throw unknownRef(ref);
}

/** @throws ServiceError `not_found` */
export async function getBotId(db: Db, ref: string): Promise<string> {
  const bot = await db
    .selectFrom('bots')
    .select('bot_id')
    .where(BOT_ID.test(ref) ? 'bot_id' : 'slug', '=', ref)
    .executeTakeFirst();
  if (bot !== undefined) return bot.bot_id;
  throw unknownRef(ref);
}

function unknownRef(ref: string): ServiceError {
  return new ServiceError('not_found', `there is no bot ${JSON.stringify(ref)}`, {
    remedy: 'See `service-local bots list`, or create it first.',
  });
}

const SUMMARY = ['bots.bot_id', 'name', 'slug', 'kind', 'status', 'current_version'] as const;

/** What of the list is wanted; all of it when nothing is said. */
export interface BotFilter {
  readonly kind?: BotRow['kind'] | undefined;
  readonly status?: BotRow['status'] | undefined;
  /** Part of the slug or the name; of letters beyond ASCII, the case counts. */
  readonly q?: string | undefined;
  /** Only these. */
  readonly bot_ids?: readonly string[] | undefined;
}

/**
 * Bots, by slug.
 * @throws ServiceError `invalid_request` for a cursor of another list.
 */
export async function listBots(
  db: Db,
  { kind, status, q, bot_ids }: BotFilter,
  request: PageRequest,
): Promise<Page<BotRow>> {
  return readPage(
    ['bots', kind, status, q, bot_ids?.join()],
    request,
    ({ slug }) => slug,
    async (after = '', limit) => {
      let query = db
        .selectFrom('bots')
        .select(SUMMARY)
        .where('slug', '>', after)
        .orderBy('slug')
        .limit(limit);
      if (kind !== undefined) query = query.where('kind', '=', kind);
      if (status !== undefined) query = query.where('status', '=', status);
      if (bot_ids !== undefined) query = query.where('bots.bot_id', 'in', bot_ids);
      if (q !== undefined) {
        const lower = q.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase());
        query = query.where((is) =>
          is.or([
            contains(sql.ref('slug'), lower),
            contains(sql.ref('name'), q),
            contains(sql`lower(name)`, lower),
          ]),
        );
      }
      return query.execute();
    },
  );
}

function contains(text: RawBuilder<unknown>, part: string): RawBuilder<SqlBool> {
  const pattern = `%${part.replaceAll(/[!%_]/g, '!$&')}%`;
  return sql<SqlBool>`${text} like ${pattern} escape '!'`;
}
