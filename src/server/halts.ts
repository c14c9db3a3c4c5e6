import * as api from '../api/halts.ts';
import { formatInstant, formatInstantOrNull } from '../api/http.ts';
import { haltAll, haltBot, type HaltReport } from '../fleet/halts/halt.ts';
import { listHalts, type HaltService, type ListedHalt } from '../fleet/halts/halts.ts';
import { reEnableBot } from '../fleet/halts/re-enable.ts';
import { resumeAll, resumeBot } from '../fleet/halts/resume.ts';
import { withNames, type WithNames } from '../identity/actor-names.ts';
import { withSlugs, type WithSlug } from '../fleet/registry/bot-slugs.ts';
import type { Db } from '../storage/tables.ts';
import { actorOf } from './authentication.ts';
import { serializePage } from './serialize-page.ts';
import type { App, Services } from './services.ts';

export function addHalts(app: App, { tasks, log }: Services): void {
  const service: HaltService = { ...tasks, log };
  const { read } = tasks.storage;
  const named = async (all: readonly ListedHalt[]): Promise<NamedHalt[]> =>
    withSlugs(read, await withNames(read, all, 'requested_by', 'lifted_by'));

  app.openapi(api.haltBot, async (c) => {
    const { reason } = c.req.valid('json');
    const report = await haltBot(service, actorOf(c), c.req.valid('param').bot_ref, reason);
    return c.json(await serializeReport(read, report), report.verified ? 200 : 207);
  });
  app.openapi(api.haltAllBots, async (c) => {
    const report = await haltAll(service, actorOf(c), c.req.valid('json').reason);
    return c.json(await serializeReport(read, report), report.verified ? 200 : 207);
  });
  app.openapi(api.resumeBot, async (c) => {
    const { reason } = c.req.valid('json');
    const halt = await resumeBot(service, actorOf(c), c.req.valid('param').bot_ref, reason);
    return c.json(serializeHalt((await named([halt]))[0]!), 200);
  });
  app.openapi(api.resumeAllBots, async (c) => {
    const halt = await resumeAll(service, actorOf(c), c.req.valid('json').reason);
    return c.json(serializeHalt((await named([halt]))[0]!), 200);
  });
  app.openapi(api.reEnableBot, async (c) => {
    const { reason } = c.req.valid('json');
    const done = await reEnableBot(service, actorOf(c), c.req.valid('param').bot_ref, reason);
    const [whole] = await withNames(read, [done], 're_enabled_by');
    return c.json(
      {
        ...whole!,
        re_enabled_at: formatInstant(done.re_enabled_at),
        latches: done.latches.map((latch) => ({
          ...latch,
          latched_at: formatInstant(latch.latched_at),
        })),
      },
      200,
    );
  });
  app.openapi(api.listHalts, async (c) => {
    const page = await listHalts(read, c.req.valid('query'));
    return c.json(serializePage({ ...page, items: await named(page.items) }, serializeHalt), 200);
  });
}

type NamedHalt = WithSlug<WithNames<ListedHalt, 'requested_by' | 'lifted_by'>>;

function serializeHalt(halt: NamedHalt): api.Halt {
  return {
    ...halt,
    requested_at: formatInstant(halt.requested_at),
    lifted_at: formatInstantOrNull(halt.lifted_at),
  };
}

async function serializeReport(
  db: Db,
  { halt, deployments, ...report }: HaltReport,
): Promise<api.HaltReport> {
  const { halt_id, scope, bot_id, reason, requested_by, requested_at } = halt;
  const [of, ...named] = await slugsOrNone(db, [{ bot_id }, ...deployments]);
  return {
    halt_id,
    scope,
    bot_id,
    bot_slug: of!.bot_slug,
    reason,
    requested_by,
    requested_at: formatInstant(requested_at),
    ...report,
    deployments: deployments.map(({ faults, orders, ...one }, i) => ({
      ...one,
      bot_slug: named[i]!.bot_slug,
      faults: [...faults],
      orders: [...orders],
    })),
  };
}

/** A halt that is in force must not fail because slugs cannot be read. */
async function slugsOrNone(
  db: Db,
  rows: readonly { readonly bot_id: string | null }[],
): Promise<readonly { readonly bot_slug: string | null }[]> {
  return withSlugs(db, rows).catch(() => rows.map(() => ({ bot_slug: null })));
}
