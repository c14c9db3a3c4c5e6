/**
 * The bots of a server. A bot has the name and slug of its current version, and is a draft, active or
 * archived. Each change is recorded as an event in the same write. Bots are never deleted. Times are
 * milliseconds since the Unix epoch.
 */
import { sql, type RawBuilder, type SqlBool } from 'kysely';
import { v7 as uuidv7 } from 'uuid';
import { invalidSpec, type SentSpec } from '../../bots/hosted.ts';
import { ServiceError } from '../../base/errors.ts';
import { appendEvents } from '../../events/append.ts';
import { NO_EVENTS, type NewEvent } from '../../events/event.ts';
import type { StateEvent } from '../../events/bot-state.ts';
import type { CodeLimits } from '../../trading/sandbox/hosted-run.ts';
import { readPage, type Page, type PageRequest } from '../../storage/paging.ts';
import type { StorageService } from '../../storage/storage.ts';
import type { BotsTable, Db } from '../../storage/tables.ts';
import { admitSpec, hashVersion, insertVersion } from './new-version.ts';

export interface BotRegistry extends StorageService {
  /** Undefined if the server accepts only built-in strategies. */
  readonly customCode?: CodeLimits | undefined;
}

export type BotRow = Readonly<
  Pick<BotsTable, 'bot_id' | 'name' | 'slug' | 'kind' | 'status' | 'current_version'>
>;

/** A bot with its current version. */
export interface Bot extends BotRow {
  readonly created_at: number;
  readonly updated_at: number;
  /** The spec as its author wrote it, as JSON. */
  readonly document: string;
  /** Result of `versionHash`. */
  readonly version_hash: string;
}

/** `ETag` (RFC 9110) of a bot, which changes with its version and status. */
export function formatEtag({
  bot_id,
  current_version,
  version_hash,
  status,
}: Pick<Bot, 'bot_id' | 'current_version' | 'version_hash' | 'status'>): string {
  return `"${bot_id}.${current_version}.${version_hash}.${status}"`;
}

/** Whether an ETag is one of those in the `If-Match` header; undefined without the header. */
export type EtagMatch = ((tag: string) => boolean) | undefined;

/**
 * Creates a bot, a draft at version 1.
 *
 * @param by caller as in the audit log: `administrator:…`.
 * @throws ServiceError `invalid_spec`, `payload_too_large`; `conflict` when another bot has the slug.
 */
export async function createBot(
  { storage, clock, customCode }: BotRegistry,
  by: string,
  sent: SentSpec,
): Promise<Bot> {
  const hosted = await admitSpec(sent, customCode);
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
    const { bot_id, kind } = bot;
    const made = { bot_id, version: 1, created_at: now, created_by: by };
    const { hash, document } = await insertVersion(tx, hosted, made);
    const place = { version: 1, occurred_at: now };
    await append(tx, bot_id, now, [
      { kind: 'bot.created', ...place, payload: { slug, name, kind, by } },
      { kind: 'version.created', ...place, payload: { hash, by } },
    ]);
    return { ...bot, document, version_hash: hash };
  });
}

/**
 * Adds a version to a bot, unless the spec equals the current version. An archived bot becomes active.
 *
 * @throws ServiceError `not_found`, `precondition_required`, `stale`, `invalid_spec`,
 * `payload_too_large`; `conflict` when another bot has the slug.
 */
export async function updateBot(
  { storage, clock, customCode }: BotRegistry,
  by: string,
  ref: string,
  matches: EtagMatch,
  sent: SentSpec,
): Promise<Bot> {
  const hosted = await admitSpec(sent, customCode);
  const hash = hashVersion(hosted);
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
      const made = { bot_id, version: current_version, created_at: now, created_by: by };
      await insertVersion(tx, hosted, made);
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
 * Archives a bot. Does nothing to an archived bot, whatever the ETag.
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
 * Makes a draft active; does nothing to an active bot.
 * @throws ServiceError `conflict` for an archived bot.
 */
export async function activateDraft(
  tx: Db,
  { bot_id, slug, status, current_version: version }: BotRow,
  by: string,
  now: number,
): Promise<void> {
  if (status === 'archived') {
    throw new ServiceError('conflict', `bot ${slug} is archived`, {
      reason: 'archived',
      remedy: 'Reactivate it with `service-local bots apply`.',
    });
  }
  if (status === 'active') return;
  const changes = { status: 'active', updated_at: now } as const;
  await tx.updateTable('bots').set(changes).where('bot_id', '=', bot_id).execute();
  await append(tx, bot_id, now, [
    { kind: 'bot.activated', version, occurred_at: now, payload: { by } },
  ]);
}

/** Accepts only events that change the state of a bot. */
async function append(
  tx: Db,
  bot_id: string,
  now: number,
  events: readonly (StateEvent & NewEvent)[],
): Promise<void> {
  await appendEvents(tx, bot_id, now, events);
}

async function refuseTaken(tx: Db, slug: string): Promise<void> {
  const holder = await tx
    .selectFrom('bots')
    .select(['bot_id', 'status'])
    .where('slug', '=', slug)
    .executeTakeFirst();
  if (holder === undefined) return;
  const what = holder.status === 'archived' ? 'an archived bot' : 'a bot';
  throw new ServiceError(
    'conflict',
    `${what} with the slug ${slug} already exists: ${holder.bot_id}`,
    {
      reason: 'slug_taken',
      remedy: 'Update that bot with `service-local bots apply`, or choose another slug.',
    },
  );
}

async function refuseDeployed(tx: Db, { bot_id, slug }: BotRow): Promise<void> {
  const deployment = await tx
    .selectFrom('bot_deployments')
    .select(['target', 'task_id'])
    .where('bot_id', '=', bot_id)
    .where('status', 'in', ['pending', 'running'])
    .executeTakeFirst();
  if (deployment === undefined) return;
  const { target, task_id } = deployment;
  throw new ServiceError('conflict', `bot ${slug} has an active deployment: ${target}`, {
    reason: 'deployment_active',
    remedy: `Wait until it has ended, or end it with \`service-local tasks cancel ${task_id}\`.`,
  });
}

function requireMatch(bot: Bot, matches: EtagMatch): void {
  if (matches === undefined) {
    throw new ServiceError('precondition_required', 'the request has no If-Match header', {
      remedy: 'Read the bot, and send its ETag as If-Match.',
    });
  }
  const tag = formatEtag(bot);
  if (matches(tag)) return;
  throw new ServiceError('stale', `bot ${bot.slug} has changed; its ETag is now ${tag}`, {
    remedy: 'Read the bot again, and check whether your change still applies.',
  });
}

function otherKind({ slug, kind }: Bot, sent: SentSpec): ServiceError {
  const message = `must be ${kind}: the kind of bot ${slug} cannot change`;
  const problem = { code: 'invalid_value', pointer: '/spec/kind', message, suggestion: kind };
  return invalidSpec([problem], 'yaml' in sent);
}

const BOT_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * @param ref `bot_id` or slug; a slug never has the form of an id.
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
    remedy: 'See `service-local bots list`, or create it with `service-local bots apply`.',
  });
}

const SUMMARY = ['bots.bot_id', 'name', 'slug', 'kind', 'status', 'current_version'] as const;

export interface BotFilter {
  readonly kind?: BotRow['kind'] | undefined;
  readonly status?: BotRow['status'] | undefined;
  /** Part of the slug or the name, case-insensitive for ASCII letters. */
  readonly q?: string | undefined;
  readonly bot_ids?: readonly string[] | undefined;
  /** Only bots with a deployment that has not ended. */
  readonly isRunning?: boolean | undefined;
}

/** Lists bots by slug. */
export async function listBots(
  db: Db,
  { kind, status, q, bot_ids, isRunning = false }: BotFilter,
  request: PageRequest,
): Promise<Page<BotRow>> {
  return readPage(
    ['bots', kind, status, q, bot_ids?.join(), ...(isRunning ? ['running'] : [])],
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
      if (isRunning) {
        query = query.where((eb) =>
          eb.exists(
            eb
              .selectFrom('bot_deployments')
              .select('deployment_id')
              .whereRef('bot_deployments.bot_id', '=', 'bots.bot_id')
              .where('ended_at', 'is', null),
          ),
        );
      }
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
