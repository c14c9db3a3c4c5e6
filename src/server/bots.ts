import type { Context } from 'hono';
import { formatInstant } from '../api/http.ts';
import * as api from '../api/bots.ts';
import {
  archiveBot,
  createBot,
  getBot,
  listBots,
  formatEtag,
  updateBot,
  type Bot,
  type BotRegistry,
  type BotRow,
  type EtagMatch,
} from '../fleet/registry/bots.ts';
import {
  diffVersions,
  readBundle,
  getVersion,
  listVersions,
  type BotVersionRow,
} from '../fleet/registry/versions.ts';
import { withNames, type WithNames } from '../identity/actor-names.ts';
import { readActivity, type ActiveSession } from '../fleet/tasks/activity.ts';
import {
  listActiveDeployments,
  type ActiveDeployments,
} from '../fleet/tasks/active-deployments.ts';
import { findHaltInForce } from '../fleet/tasks/halt-in-force.ts';
import { actorOf } from './authentication.ts';
import { createOnce } from './idempotency.ts';
import { serializePage } from './serialize-page.ts';
import type { App, AppEnv, Services } from './services.ts';
import { serializeDeployment, serializeEffectiveHalt } from './tasks.ts';

export function addBots(app: App, services: Services): void {
  const { identity } = services;
  const registry = { ...identity, customCode: services.tasks.customCode };
  const { read } = registry.storage;
  const withActive = async (bot: Bot): Promise<Tagged> =>
    serializeTaggedBot(
      bot,
      await listActiveDeployments(read, bot.bot_id),
      await serializeEffectiveHalt(read, await findHaltInForce(read, bot.bot_id)),
    );

  app.openapi(api.createBot, async (c) => {
    const create = (service: BotRegistry) => createBot(service, actorOf(c), c.req.valid('json'));
    // A new bot can only be halted by a halt of all bots.
    const halt = await serializeEffectiveHalt(read, await findHaltInForce(read, ''));
    const made = await createOnce(c, registry, create, (bot) =>
      serializeTaggedBot(bot, NONE_ACTIVE, halt),
    );
    c.header('Location', `/bots/${made.bot.id}`);
    return respondWithTag(c, made, 201);
  });
  app.openapi(api.listBots, async (c) => {
    const { limit, cursor, ids, include, running, ...filter } = c.req.valid('query');
    const bot_ids = ids?.split(',');
    const page = await listBots(
      read,
      { ...filter, bot_ids, isRunning: running === 'true' },
      { limit, cursor },
    );
    if (include === undefined) return c.json(serializePage(page, serializeSummary), 200);
    const activity = await readActivity(
      read,
      page.items.map(({ bot_id }) => bot_id),
    );
    const answer = (bot: BotRow): api.BotListItem => {
      const { last, sessions, ...rest } = activity.get(bot.bot_id)!;
      return {
        ...serializeSummary(bot),
        activity: {
          ...rest,
          last: last && serializeDeployment(last),
          sessions: sessions.map(serializeSession),
        },
      };
    };
    return c.json(serializePage(page, answer), 200);
  });
  app.openapi(api.getBot, async (c) => {
    const bot = await getBot(read, c.req.valid('param').bot_ref);
    const isKnown = tagMatch(c.req.valid('header')['if-none-match'], true);
    if (!isKnown?.(formatEtag(bot))) return respondWithTag(c, await withActive(bot), 200);
    c.header('ETag', formatEtag(bot));
    return c.body(null, 304);
  });
  app.openapi(api.updateBot, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const matches = tagMatch(c.req.valid('header')['if-match']);
    const bot = await updateBot(registry, actorOf(c), bot_ref, matches, c.req.valid('json'));
    return respondWithTag(c, await withActive(bot), 200);
  });
  app.openapi(api.archiveBot, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const matches = tagMatch(c.req.valid('header')['if-match']);
    await archiveBot(registry, actorOf(c), bot_ref, matches);
    return c.body(null, 204);
  });

  app.openapi(api.listBotVersions, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const page = await listVersions(read, bot_ref, c.req.valid('query'));
    const items = await withNames(read, page.items, 'created_by');
    return c.json(serializePage({ ...page, items }, serializeVersion), 200);
  });
  app.openapi(api.getBotVersion, async (c) => {
    const { bot_ref, version } = c.req.valid('param');
    const { document, ...row } = await getVersion(read, bot_ref, version);
    const [named] = await withNames(read, [row], 'created_by');
    return c.json({ ...serializeVersion(named!), document: parseDocument(document) }, 200);
  });
  app.openapi(api.getBotVersionFiles, async (c) => {
    const { bot_ref, version } = c.req.valid('param');
    const files = await readBundle(read, bot_ref, await getVersion(read, bot_ref, version));
    return c.json({ files: files ?? {} }, 200);
  });
  app.openapi(api.diffBotVersions, async (c) => {
    const { bot_ref, version } = c.req.valid('param');
    const { to } = c.req.valid('query');
    const diff = await diffVersions(read, bot_ref, version, to);
    return c.json({ from_version: version, to_version: to, ...diff }, 200);
  });
}

/**
 * Parses `If-Match` or `If-None-Match`: a list of tags, or `*` for any (RFC 9110 §13.1).
 * @param weak whether weak tags match; for changes they must not.
 */
function tagMatch(header: string | undefined, weak = false): EtagMatch {
  if (header === undefined) return undefined;
  if (header.trim() === '*') return () => true;
  const tags = new Set(header.split(',').map((tag) => tag.trim().replace(weak ? /^W\// : '', '')));
  return (tag) => tags.has(tag);
}

const NONE_ACTIVE: ActiveDeployments = { active_deployments: [], active_deployment_count: 0 };

interface Tagged {
  readonly bot: api.BotDetail;
  readonly etag: string;
}

/** A bot as response body, with its `ETag`. */
function serializeTaggedBot(
  bot: Bot,
  { active_deployments, active_deployment_count }: ActiveDeployments,
  halted: api.BotDetail['halted'],
): Tagged {
  const { document, version_hash, created_at, updated_at } = bot;
  return {
    etag: formatEtag(bot),
    bot: {
      ...serializeSummary(bot),
      document: parseDocument(document),
      version_hash,
      created_at: formatInstant(created_at),
      updated_at: formatInstant(updated_at),
      active_deployments: active_deployments.map(serializeDeployment),
      active_deployment_count,
      halted,
    },
  };
}

function respondWithTag<S extends 200 | 201>(c: Context<AppEnv>, { bot, etag }: Tagged, status: S) {
  c.header('ETag', etag);
  return c.json(bot, status);
}

function serializeSummary({ bot_id, name, slug, kind, status, current_version }: BotRow) {
  return { id: bot_id, name, slug, kind, status, current_version };
}

function serializeVersion({
  created_at,
  ...row
}: WithNames<BotVersionRow, 'created_by'>): api.BotVersion {
  const { version, hash, bundle_hash, created_by, created_by_name } = row;
  const created = { created_at: formatInstant(created_at), created_by, created_by_name };
  return { version, hash, bundle_hash, ...created };
}

function serializeSession({
  task_id,
  recorded_at,
  time,
  equity,
  positions,
  working,
  carry,
}: ActiveSession): NonNullable<api.BotListItem['activity']>['sessions'][number] {
  const held = Object.entries(positions);
  const isKnown = held.every(([symbol]) => carry?.marks[symbol] !== undefined);
  return {
    task_id,
    recorded_at: formatInstant(recorded_at),
    time,
    equity,
    day_start_equity: carry?.risk.day_start_equity ?? null,
    gross_exposure: isKnown
      ? held.reduce((sum, [symbol, units]) => sum + Math.abs(units * carry!.marks[symbol]!), 0)
      : null,
    working_orders: working.length,
  };
}

function parseDocument(document: string): Record<string, unknown> {
  return JSON.parse(document) as Record<string, unknown>;
}
