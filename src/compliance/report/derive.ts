import { ServiceError } from '../../base/errors.ts';
import { formatCountOf } from '../../base/format.ts';
import { packageVersion } from '../../base/package-version.ts';
import { ITEM_FIELDS, SECTION_FIELDS } from '../../base/validation-report-fields.ts';
import { ENGINE_VERSION } from '../../engine/version.ts';
import { buildAnnexI } from './annex.ts';
import { listArticleRows } from './article-rows.ts';
import * as counts from './event-counts.ts';
import { findGaps } from './gaps.ts';
import { readRecords, type FailedTask, type Records, type ReportService } from './records.ts';
import { composeFields, figure, human, QUERIES, withHashes } from './report-fields.ts';
import { cutList, MOST_LISTED } from './report-values.ts';
import {
  listThresholdChanges,
  reportLimit,
  reportSpecLimits,
  reportThresholds,
} from './reported-limits.ts';
import { describeEnvironment } from './test-results.ts';
import { listPlaces } from './traded-deployments.ts';
import type { Incident, Report } from './validation-report.ts';
import {
  describeChange,
  draftOperators,
  getStrategyName,
  listLimitChanges,
} from './version-changes.ts';

const NOTICE =
  'Facts about one bot, drafted as an annex to the yearly self-assessment of a firm under Article 9 of RTS 6 (Commission Delegated Regulation (EU) 2017/589). It is not a statement of compliance: nothing in it is assessed until people have assessed it, and a test against a simulated venue does not discharge Article 6, which requires a test against the system of the venue or of the access provider. It is not legal advice.';
const METHOD =
  'Paragraph by paragraph. Figures marked A were read from the event log of the bot, the registry and the audit log, with the query named next to each; the period refers to the time at which events were recorded. No sampling: all records of the period were read. Texts marked M are drafts.';

const HOUSE_NUMBERS = {
  retest_after: 'results of conformance and stress tests become stale after 12 months',
  most_listed: `lists contain at most ${MOST_LISTED} entries and state the total number`,
};

/** Limited because each report reads the whole log of its bot. */
const MOST_AT_ONCE = 2;
const MOST_WAITING = 20;
let atOnce = 0;
/** Reports that wait for their turn, the first first. */
const waiting: (() => void)[] = [];

/**
 * Drafts the report of a bot for a calendar year, up to now if the year is not over. Stores nothing.
 *
 * @param year the current one by default.
 * @throws ServiceError `not_found`; `overloaded`; `invalid_request` for a year that has not begun or
 * ended before the bot was created, and with the problem `not_trading` for a research bot.
 */
export async function deriveReport(
  service: ReportService,
  ref: string,
  year: number | undefined,
): Promise<Report> {
  await takeTurn();
  try {
    return composeReport(await readRecords(service, ref, year));
  } finally {
    const next = waiting.shift();
    if (next === undefined) atOnce -= 1;
    else next();
  }
}

/** @throws ServiceError `overloaded` */
async function takeTurn(): Promise<void> {
  if (atOnce < MOST_AT_ONCE) {
    atOnce += 1;
    return;
  }
  if (waiting.length < MOST_WAITING) return new Promise((resolve) => waiting.push(resolve));
  throw new ServiceError('overloaded', `the server is already creating ${MOST_WAITING} reports`, {
    remedy: 'Try again in a few seconds.',
    retryAfterSeconds: 5,
  });
}

function composeReport(records: Records): Report {
  const { bot, period, made } = records;
  const { bot_id } = bot;
  const { at, asked, log } = records.params;
  const gaps = findGaps(records);
  const overrides = figure('overrides.of_bot', asked, records.overrides);
  return withHashes({
    schema: 'rts6-validation/1',
    status: 'draft',
    notice: NOTICE,
    number: null,
    content_hash: '',
    period: { year: period.year, from: asked.from, to: asked.to },
    as_of: at.at,
    scope: {
      bot_ref: bot.slug,
      bot_id,
      name: bot.name,
      firm: human(),
      fleet: figure('bots.list', at, records.fleet),
    },
    generated_by: {
      version: packageVersion(),
      engine: ENGINE_VERSION,
      log: figure('log.head', log, records.head),
      inputs_hash: '',
      gaps: gaps.map((gap) => ({ ...gap, owner: human(), due: human() })),
    },
    queries: QUERIES,
    house_numbers: HOUSE_NUMBERS,
    summary: composeFields(SECTION_FIELDS.summary, { method: METHOD, prior_year_actions: null }),
    annex_i: buildAnnexI(records),
    inventory: composeInventory(records),
    risk_controls: [
      ...reportSpecLimits(bot_id, records.versions),
      ...reportThresholds(records.thresholds, asked),
      reportLimit('overrides', ['15(6)'], overrides),
    ],
    governance: composeFields(SECTION_FIELDS.governance, {
      administrators: figure('administrators.list', at, records.administrators),
      separation_evidence: null,
      holders_of_halt: figure('tokens.with_halt', at, records.haltHolders),
    }),
    testing: composeTesting(records),
    changes: made.map((version) => describeChange(bot_id, version)),
    ...composeEvents(records),
    surveillance: composeFields(SECTION_FIELDS.surveillance, {}),
    incidents: records.failed.slice(0, MOST_LISTED).map(describeIncident),
    articles: listArticleRows(gaps),
    deficiencies: [],
    attestations: {
      risk_management_9_2: null,
      technical_staff_involved_9_2: null,
      internal_audit_9_3: null,
      internal_audit_absent_reason: human(),
      senior_management_9_3: null,
    },
  });
}

function composeInventory({ bot, current, document, deployments, made }: Records) {
  const { bot_id, slug, name, status } = bot;
  const { metadata, spec } = document;
  const { ml_models: models = [], agents = [] } = spec;
  const venues = listPlaces(deployments, 'exchange');
  const params = { bot_id, version: current?.version ?? 0 };
  const facts = figure('bot.current', params, {
    algo_id: bot_id,
    slug,
    name,
    status,
    version: current?.version ?? null,
    code_hash: current?.hash ?? null,
    bundle_hash: current?.bundle_hash ?? null,
    overview: metadata?.description ?? null,
    owner: metadata?.owner ?? null,
    strategy: getStrategyName(spec),
    instruments: spec.universe?.symbols ?? [],
    venues,
    limits_art8: spec.risk ?? null,
    model_ids: models.map((model) => `${model.name} ${model.digest}`),
  });
  return composeFields(SECTION_FIELDS.inventory, {
    facts,
    type: 'decision and execution: the bot decides, and its engine creates the orders',
    owner: metadata?.owner ?? null,
    approved_operators: draftOperators(made),
    uses_ai:
      models.length + agents.length === 0
        ? 'The spec names neither models nor agents.'
        : `The spec names ${formatCountOf(models.length, 'model')} and ${formatCountOf(agents.length, 'agent')}.`,
    third_party: venues.length === 0 ? null : `Venues and data providers: ${venues.join(', ')}.`,
  });
}

function composeTesting({ bot, params, tests, conformance, stress, drills }: Records) {
  const tried = { bot_id: bot.bot_id, to: params.asked.to, ...params.at };
  const kinds = ['conformance', 'stress'];
  const halts = formatCountOf(drills.length, 'halt drill');
  return composeFields(SECTION_FIELDS.testing, {
    env_separation_7: figure('tasks.of_kind', { ...tried, kinds }, tests.map(describeEnvironment)),
    conformance: figure('tasks.of_kind', { ...tried, kind: 'conformance' }, conformance),
    stress: figure('tasks.of_kind', { ...tried, kind: 'stress' }, stress),
    bcp_test_14_4: drills.length === 0 ? null : `${halts} in the period; see section kill.`,
  });
}

function composeEvents(records: Records) {
  const { bot, current, document, environments, made, thresholds } = records;
  const { asked, log } = records.params;
  const { from, to } = asked;
  const count = (value: unknown) => figure('log.counts', log, value);
  const countKinds = (kinds: RegExp) => counts.countKinds(records.counts, kinds);
  const latches = countKinds(counts.LATCHES);
  const limit = 'max_position_pct';
  const ofSpec = { bot_id: bot.bot_id, version: current?.version ?? 0, limit };
  return {
    kill: composeFields(SECTION_FIELDS.kill, {
      live_activations: figure('halts.of_bot', asked, cutList(records.halts)),
      drills: figure('halts.of_drills', { from, to }, cutList(records.drills)),
      attribution_coverage: count(records.attribution),
    }),
    pretrade: composeFields(SECTION_FIELDS.pretrade, {
      messages: count(counts.countOrderEvents(records.counts, environments)),
      breaches: count(counts.countBreaches(records.counts, environments)),
      overrides_15_6: figure('overrides.of_bot', asked, records.overrides),
      // The bot may not produce such events at all, so 0 would be misleading.
      throttle_disables_15_3: count(latches.length === 0 ? null : latches),
      limit_changes: figure('risk.limit_changes', asked, {
        of_versions: listLimitChanges(made),
        of_thresholds: listThresholdChanges(thresholds),
      }),
    }),
    monitoring: composeFields(SECTION_FIELDS.monitoring, {
      alerts: figure('log.alerts', log, records.alerts),
      coverage_gaps: count(countKinds(counts.DATA_GAPS)),
    }),
    posttrade: composeFields(SECTION_FIELDS.posttrade, {
      breaks: count(countKinds(counts.BREAKS)),
      position_limits_17_4: figure('risk.controls', ofSpec, document.spec.risk?.[limit] ?? null),
    }),
  };
}

/** Describes a failed run as a candidate: a person decides whether it was an incident. */
function describeIncident(task: FailedTask): Incident {
  const facts = figure('tasks.failed', { task_id: task.task_id }, task);
  const root_cause = task.detail === null ? null : `The run failed: ${task.detail}`;
  return { id: task.task_id, ...composeFields(ITEM_FIELDS.incidents, { facts, root_cause }) };
}
