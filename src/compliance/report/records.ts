/** Reads the records from which a validation report is drafted. */
import { ServiceError } from '../../base/errors.ts';
import { getBot } from '../../fleet/registry/bots.ts';
import type { Storage } from '../../storage/storage.ts';
import type { Db } from '../../storage/tables.ts';
import { createStalenessCheck } from '../tests/current-staleness.ts';
import type { TestKind } from '../tests/result.ts';
import { countAlerts, countAttribution, countEvents, type Environments } from './event-counts.ts';
import { listDrills, listHalts } from './halt-activations.ts';
import { MOST_LISTED } from './listed.ts';
import {
  findHead,
  formatInstant,
  formatInstantOrNull,
  invalidYear,
  periodOf,
  rangeOf,
  type Period,
} from './period.ts';
import { listOverrides, readThresholds, subjectsIn } from './reported-limits.ts';
import {
  listEndedTests,
  summarizeConformance,
  summarizeStress,
  type EndedTest,
} from './test-results.ts';
import { listDeployments } from './traded-deployments.ts';
import { getStrategyName, listVersions, type Document } from './version-changes.ts';

export interface ReportService {
  readonly storage: Storage;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
}

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
  const document: Document = versions.at(-1)?.document ?? { spec: {} };
  const deployments = await listDeployments(db, bot_id, period);
  const environments: Environments = new Map(
    deployments.map(({ task_id, target }) => [task_id, target]),
  );
  const counts = await countEvents(storage, bot_id, range);
  const staleness = createStalenessCheck({ storage, clock: () => now }, bot);
  const listTests = async (kind: TestKind): Promise<EndedTest[]> => {
    const tests = [];
    for (const test of await listEndedTests(db, bot_id, kind, period.to)) {
      tests.push({ ...test, staleness: await staleness(test) });
    }
    return tests;
  };
  // Imported here because it loads the conformance cases, which a server does not need otherwise.
  const { CATALOGUE } = await import('../conformance/case-catalogue.ts');
  const conformance = await listTests('conformance');
  const stress = await listTests('stress');
  return {
    now,
    period,
    bot,
    range,
    head: await findHead(db, bot_id, range),
    versions,
    current: versions.at(-1),
    /** Versions created in the period. */
    made: versions.filter(({ created_at }) => created_at >= period.from),
    document,
    deployments,
    environments,
    counts,
    alerts: await countAlerts(db, bot_id, range),
    attribution: countAttribution(counts, deployments),
    failed: await listFailedTasks(db, bot_id, period),
    halts: await listHalts(db, bot_id, period),
    drills: await listDrills(db, period),
    thresholds: await readThresholds(db, subjectsIn(document), period),
    overrides: await listOverrides(db, bot_id, period),
    tests: [...conformance, ...stress],
    conformance: conformance.map(summarizeConformance),
    stress: stress.map(summarizeStress),
    /** Ids of all conformance cases. */
    catalogue: CATALOGUE.map(({ id }) => id),
    fleet: await readFleet(db),
    administrators: await listAdministrators(db),
    haltHolders: await listHaltHolders(db, now),
  };
}

export type Records = Awaited<ReturnType<typeof readRecords>>;

function requireReportable(
  { slug, kind, created_at }: Awaited<ReturnType<typeof getBot>>,
  { year, to }: Period,
): void {
  if (kind === 'research') {
    const message =
      'a research bot sends no orders, so RTS 6 does not apply; ask for the report of a trading bot';
    const problems = [{ code: 'not_trading', message, pointer: '/bot_ref' }];
    throw new ServiceError('invalid_request', message, { problems });
  }
  if (created_at < to) return;
  const created = formatInstant(created_at).slice(0, 10);
  throw invalidYear(`bot ${slug} did not exist in ${year}; it was created on ${created}`);
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
    const { code = null, message = null } = JSON.parse(error ?? '{}') as {
      readonly code?: string;
      readonly message?: string;
    };
    return {
      ...row,
      begun_at: formatInstantOrNull(started_at),
      ended_at: formatInstantOrNull(ended_at),
      code,
      detail: message,
    };
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

async function listAdministrators(db: Db) {
  const rows = await db
    .selectFrom('administrators')
    .select(['administrator_id', 'name', 'created_at'])
    .where('disabled_at', 'is', null)
    .orderBy('administrator_id')
    .limit(MOST_LISTED)
    .execute();
  return rows.map(({ created_at, ...row }) => ({ ...row, since: formatInstant(created_at) }));
}

/** Lists administrators with a token that may halt; in the console every administrator may halt. */
async function listHaltHolders(db: Db, now: number) {
  const rows = await db
    .selectFrom('api_tokens as token')
    .innerJoin('administrators as holder', 'holder.administrator_id', 'token.administrator_id')
    .select(['holder.administrator_id', 'holder.name', 'scopes'])
    .where('revoked_at', 'is', null)
    .where('expires_at', '>', now)
    .where('disabled_at', 'is', null)
    .execute();
  const holders = rows.filter(({ scopes }) => (JSON.parse(scopes) as string[]).includes('halt'));
  return [...Map.groupBy(holders, ({ administrator_id }) => administrator_id)]
    .map(([administrator_id, tokens]) => ({
      administrator_id,
      name: tokens[0]!.name,
      tokens: tokens.length,
    }))
    .toSorted((a, b) => (a.administrator_id < b.administrator_id ? -1 : 1));
}
