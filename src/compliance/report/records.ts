/** Reads the records from which a validation report is drafted. */
import { getBot, type Bot, type BotRegistry } from '../../fleet/registry/bots.ts';
import type { Db } from '../../storage/tables.ts';
import { createStalenessCheck } from '../tests/staleness.ts';
import { countAlerts, countAttribution, countEvents, type Environments } from './event-counts.ts';
import { listHalts } from './halt-activations.ts';
import {
  findHead,
  formatInstant,
  formatInstantOrNull,
  invalidField,
  periodOf,
  rangeOf,
  type Period,
} from './period.ts';
import { MOST_LISTED } from './report-values.ts';
import { listOverrides, readThresholds, subjectsIn } from './reported-limits.ts';
import { listTests, summarizeConformance, summarizeStress } from './test-results.ts';
import { listDeployments } from './traded-deployments.ts';
import { getStrategyName, listVersions, type Document } from './version-changes.ts';

export type ReportService = Pick<BotRegistry, 'storage' | 'clock'>;

/** @throws ServiceError as `deriveReport`. */
export async function readRecords(
  { storage, clock }: ReportService,
  ref: string,
  year: number | undefined,
) {
  const db = storage.read;
  const now = clock();
  const period = periodOf(year, now);
  const bot = await getBot(db, ref);
  requireReportable(bot, period);
  const { bot_id } = bot;
  const range = await rangeOf(db, bot_id, period);
  const versions = await listVersions(db, bot_id, period.to);
  const current = versions.at(-1);
  const document: Document = current?.document ?? { spec: {} };
  const deployments = await listDeployments(db, bot_id, period);
  const environments: Environments = new Map(deployments.map((one) => [one.task_id, one.target]));
  const counts = await countEvents(storage, bot_id, range);
  const checkStaleness = createStalenessCheck({ storage, clock: () => now }, bot);
  const conformance = await listTests(db, bot_id, 'conformance', period.to, checkStaleness);
  const stress = await listTests(db, bot_id, 'stress', period.to, checkStaleness);
  // Imported here because it loads the conformance cases, which a server does not need otherwise.
  const { CATALOGUE } = await import('../conformance/case-catalogue.ts');
  const asked = { bot_id, from: formatInstant(period.from), to: formatInstant(period.to) };
  return {
    now,
    /** Parameters of queries: of the current state, of the bot in the period, and of its events. */
    params: { at: { at: formatInstant(now) }, asked, log: { ...asked, ...range } },
    period,
    bot,
    range,
    head: (await findHead(db, bot_id, range)) ?? null,
    versions,
    current,
    /** Versions created in the period. */
    made: versions.filter(({ created_at }) => created_at >= period.from),
    document,
    deployments,
    environments,
    counts,
    alerts: countAlerts(counts),
    attribution: countAttribution(counts, deployments),
    failed: await listFailedTasks(db, bot_id, period),
    ...(await listHalts(db, bot_id, period)),
    thresholds: await readThresholds(db, subjectsIn(document), period),
    overrides: await listOverrides(db, bot_id, period),
    tests: [...conformance, ...stress],
    conformance: conformance.map(summarizeConformance),
    stress: stress.map(summarizeStress),
    /** Ids of all conformance cases. */
    catalogue: CATALOGUE.map(({ id }) => id),
    fleet: await readFleet(db),
    ...(await listAdministrators(db, now)),
  };
}

export type Records = Awaited<ReturnType<typeof readRecords>>;

function requireReportable({ slug, kind, created_at }: Bot, { year, to }: Period): void {
  if (kind === 'research') {
    const message =
      'a research bot sends no orders, so RTS 6 does not apply; ask for the report of a trading bot';
    throw invalidField('/bot_ref', message, 'not_trading');
  }
  if (created_at < to) return;
  const created = formatInstant(created_at).slice(0, 10);
  throw invalidField('/year', `bot ${slug} did not exist in ${year}; it was created on ${created}`);
}

async function listFailedTasks(db: Db, bot_id: string, { from, to }: Period) {
  const rows = await db
    .selectFrom('tasks')
    .select(['task_id', 'kind', 'version', 'started_at', 'ended_at', 'error'])
    .where('bot_id', '=', bot_id)
    .where('status', '=', 'failed')
    .where('ended_at', '>=', from)
    .where('ended_at', '<', to)
    .orderBy('task_id')
    .limit(MOST_LISTED + 1)
    .execute();
  return rows.map(({ started_at, ended_at, error, ...row }) => {
    const { code = null, message: detail = null } = JSON.parse(error ?? '{}') as Partial<
      Record<'code' | 'message', string>
    >;
    const begun_at = formatInstantOrNull(started_at);
    return { ...row, begun_at, ended_at: formatInstantOrNull(ended_at), code, detail };
  });
}

export type FailedTask = Awaited<ReturnType<typeof listFailedTasks>>[number];

/** Lists the bots that are not archived, with facts about their current versions. */
async function readFleet(db: Db) {
  const rows = await db
    .selectFrom('bots')
    .innerJoin('bot_versions as version', (join) =>
      join
        .onRef('version.bot_id', '=', 'bots.bot_id')
        .onRef('version.version', '=', 'bots.current_version'),
    )
    .select(['slug', 'name', 'kind', 'status', 'current_version', 'version.hash', 'bundle_hash'])
    .select('document')
    .where('status', '!=', 'archived')
    .orderBy('slug')
    .limit(MOST_LISTED)
    .execute();
  const { total } = await db
    .selectFrom('bots')
    .select(({ fn }) => fn.countAll<number>().as('total'))
    .where('status', '!=', 'archived')
    .executeTakeFirstOrThrow();
  const items = rows.map(({ document, current_version, ...row }) => {
    const { metadata, spec } = JSON.parse(document) as Document;
    return {
      ...row,
      version: current_version,
      strategy: getStrategyName(spec),
      instruments: spec.universe?.symbols?.length ?? null,
      owner: metadata?.owner ?? null,
    };
  });
  return { total, items };
}

/**
 * Lists administrators who are not disabled, and those with a token that may halt; in the console every
 * administrator may halt.
 */
async function listAdministrators(db: Db, now: number) {
  const rows = await db
    .selectFrom('administrators as holder')
    .leftJoin('api_tokens as token', (join) =>
      join
        .onRef('token.administrator_id', '=', 'holder.administrator_id')
        .on('revoked_at', 'is', null)
        .on('expires_at', '>', now)
        .on('scopes', 'like', '%"halt"%'),
    )
    .select(['holder.administrator_id', 'holder.name', 'holder.created_at'])
    .select(({ fn }) => fn.count<number>('token_id').as('tokens'))
    .where('disabled_at', 'is', null)
    .groupBy(['holder.administrator_id', 'holder.name', 'holder.created_at'])
    .orderBy('holder.administrator_id')
    .execute();
  return {
    administrators: rows.slice(0, MOST_LISTED).map(({ administrator_id, name, created_at }) => ({
      administrator_id,
      name,
      since: formatInstant(created_at),
    })),
    haltHolders: rows
      .filter(({ tokens }) => tokens > 0)
      .map(({ administrator_id, name, tokens }) => ({ administrator_id, name, tokens })),
  };
}
