import { getBot } from '../../fleet/registry/bots.ts';
import { ServiceError } from '../../base/errors.ts';
import { ENGINE_VERSION } from '../../engine/version.ts';
import { formatCountOf } from '../../base/format.ts';
import type { Storage } from '../../storage/storage.ts';
import { packageVersion } from '../../base/package-version.ts';
import { buildAnnexI } from './annex.ts';
import { listArticleRows } from './article-rows.ts';
import { reportLimits } from './reported-limits.ts';
import {
  countAttribution,
  countBreaches,
  countOrderEvents,
  countKinds,
  countKindsOrNull,
  LATCHES,
} from './counts.ts';
import {
  collectAnnexFacts,
  toChangeId,
  describeChange,
  describeIncident,
  buildInventory,
  listLimitChanges,
  draftOperators,
  describeAiUse,
  listVenues,
} from './report-facts.ts';
import { createStalenessCheck } from '../tests/current-staleness.ts';
import {
  contentHash,
  digest,
  draft,
  fieldsIn,
  figure,
  Gaps,
  human,
  QUERIES,
  reportedLimit,
} from './report-fields.ts';
import { addPeriodGaps, addRecordGaps, addTestGaps } from './gaps.ts';
import type { Report } from './payload.ts';
import {
  formatInstant,
  countEvents,
  periodOf,
  rangeOf,
  type Period,
  type SeqRange,
} from './period.ts';
import {
  listAdministrators,
  listDeployments,
  listDrills,
  listFailedTasks,
  readFleet,
  listHalts,
  listHaltHolders,
  cutList,
  MOST_LISTED,
  listEndedTasks,
  listVersions,
  type Document,
} from './records.ts';
import {
  countAlerts,
  listOverrides,
  subjectsIn,
  listThresholdChanges,
  reportThresholds,
} from './supervision.ts';
import { summarizeConformance, describeEnvironment, summarizeStress } from './test-summaries.ts';

export interface ReportService {
  readonly storage: Storage;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
}

const NOTICE =
  'Facts about one bot, drafted as an annex to the yearly self-assessment of a firm under Article 9 of RTS 6 (Commission Delegated Regulation (EU) 2017/589). It is not a statement of compliance: nothing in it is assessed until people have assessed it, and a test against a simulated venue does not discharge Article 6, which requires a test against the system of the venue or of the access provider. It is not legal advice.';

const HOUSE_NUMBERS = {
  retest_after: 'results of conformance and stress tests become stale after 12 months',
  most_listed: `lists contain at most ${MOST_LISTED} entries and state the total number`,
};

/** Limited because each report reads the whole log of its bot. */
const MOST_AT_ONCE = 2;
let atOnce = 0;

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
  if (atOnce >= MOST_AT_ONCE) {
    throw new ServiceError('overloaded', `the server is already creating ${MOST_AT_ONCE} reports`, {
      remedy: 'Try again in a few seconds.',
      retryAfterSeconds: 5,
    });
  }
  atOnce += 1;
  try {
    return await derive(service, ref, year);
  } finally {
    atOnce -= 1;
  }
}

async function derive(
  { storage, clock }: ReportService,
  ref: string,
  year: number | undefined,
): Promise<Report> {
  const { read } = storage;
  const now = clock();
  const period = periodOf(year, now);
  const bot = await getBot(read, ref);
  const { bot_id } = bot;
  requireReportable(bot, period);
  const range = await rangeOf(read, bot_id, period);
  const asked = { bot_id, from: formatInstant(period.from), to: formatInstant(period.to) };
  const gaps = new Gaps();
  addPeriodGaps(gaps, period, range);

  const versions = await listVersions(read, bot_id, period.to);
  const made = versions.filter(({ created_at }) => created_at >= period.from);
  if (versions.length > MOST_LISTED) {
    gaps.add('versions_cut', `only the last ${MOST_LISTED} versions were examined`, ['5(7)', '11']);
  }
  const deployments = await listDeployments(read, bot_id, period);
  const counts = await countEvents(storage, bot_id, range);
  const log = { ...asked, ...range };
  const environments = new Map(deployments.map(({ task_id, target }) => [task_id, target]));
  const messages = countOrderEvents(counts, environments);
  const failed = await listFailedTasks(read, bot_id, period);
  const halts = await listHalts(read, bot_id, period);
  const drills = await listDrills(read, period);
  const fleet = figure('bots.list', { at: formatInstant(now) }, await readFleet(read));
  const current = versions.at(-1);
  const tried = { bot_id, to: asked.to, at: formatInstant(now) };
  const conformance = await listEndedTasks(read, bot_id, 'conformance', period.to);
  const staleness = createStalenessCheck({ storage, clock: () => now }, bot);
  const conformed: ReturnType<typeof summarizeConformance>[] = [];
  for (const task of conformance) conformed.push(summarizeConformance(task, await staleness(task)));
  const stress = await listEndedTasks(read, bot_id, 'stress', period.to);
  const stressed: ReturnType<typeof summarizeStress>[] = [];
  for (const task of stress) stressed.push(summarizeStress(task, await staleness(task)));
  const document = (current?.document ?? { spec: {} }) as Document;
  const venues = listVenues(deployments);
  const subjects = subjectsIn(document);
  const overrides = figure('overrides.of_bot', asked, await listOverrides(read, bot_id, period));
  const controls = [
    ...reportLimits(bot_id, versions, gaps),
    ...(await reportThresholds(read, asked, subjects, period.to, gaps)),
    reportedLimit('overrides', ['15(6)'], overrides),
  ];
  const attribution = countAttribution(counts, deployments);
  const head = await readHead(storage, bot_id, range);
  addRecordGaps(gaps, {
    counts,
    environments,
    drills: drills.length,
    halts: halts.length,
    unattributed: attribution.orders - attribution.attributed,
  });
  // Imported here because it loads the conformance cases, which a server does not need otherwise.
  const { CATALOGUE } = await import('../conformance/catalogue.ts');
  const catalogue = CATALOGUE.map(({ id }) => id);
  addTestGaps(gaps, catalogue, conformed, stressed);
  if (failed.length > MOST_LISTED) {
    gaps.add(
      'incidents_cut',
      `more than ${MOST_LISTED} runs failed; the remaining ones are not listed`,
      [],
    );
  }
  for (const { id } of made.map(toChangeId)) {
    gaps.add(`approval_${id}`, `who approved version ${id}`, ['5(2)', '5(7)']);
  }

  const report: Report = {
    schema: 'rts6-validation/1',
    status: 'draft',
    notice: NOTICE,
    number: null,
    content_hash: '',
    period: { year: period.year, from: asked.from, to: asked.to },
    as_of: formatInstant(now),
    scope: { bot_ref: bot.slug, bot_id, name: bot.name, firm: human(), fleet },
    generated_by: {
      version: packageVersion(),
      engine: ENGINE_VERSION,
      log: figure('log.head', log, head),
      inputs_hash: '',
      gaps: gaps.list,
    },
    queries: QUERIES,
    house_numbers: HOUSE_NUMBERS,
    summary: {
      statement_of_compliance: human(),
      overall_opinion: human(),
      method: draft(
        'Paragraph by paragraph. Figures marked A were read from the event log of the bot, the registry and the audit log, with the query named next to each; the period refers to the time at which events were recorded. No sampling: all records of the period were read. Texts marked M are drafts.',
      ),
      prior_year_actions: draft(null),
    },
    annex_i: buildAnnexI(
      collectAnnexFacts(bot_id, document, asked, { deployments, venues, messages, fleet, log }),
    ),
    inventory: {
      facts: figure(
        'bot.current',
        { bot_id, version: current?.version ?? 0 },
        buildInventory(bot, current, document, venues),
      ),
      type: draft('decision and execution: the bot decides, and its engine creates the orders'),
      approved_on: human(),
      approval_scope: human(),
      restrictions: human(),
      owner: draft(document.metadata?.owner ?? null),
      approved_operators: draft(draftOperators(made)),
      uses_ai: draft(describeAiUse(document)),
      third_party: draft(
        venues.length === 0 ? null : `Venues and data providers: ${venues.join(', ')}.`,
      ),
      doc_link: human(),
    },
    risk_controls: controls,
    governance: {
      accountability_map: human(),
      administrators: figure(
        'administrators.list',
        { at: formatInstant(now) },
        await listAdministrators(read),
      ),
      designated_approvers: human(),
      separation_evidence: draft(null),
      staff_skills_training: human(),
      holders_of_halt: figure(
        'tokens.with_halt',
        { at: formatInstant(now) },
        await listHaltHolders(read, now),
      ),
      compliance_kill_access_2_2: human(),
      outsourcing_4: human(),
    },
    testing: {
      methodology_ref: human(),
      env_separation_7: figure('tasks.of_kind', { ...tried, kinds: ['conformance', 'stress'] }, [
        ...conformance.map((task) => describeEnvironment('conformance', task)),
        ...stress.map((task) => describeEnvironment('stress', task)),
      ]),
      conformance: figure('tasks.of_kind', { ...tried, kind: 'conformance' }, conformed),
      venue_report_ref: human(),
      stress: figure('tasks.of_kind', { ...tried, kind: 'stress' }, stressed),
      bcp_test_14_4: draft(
        drills.length === 0
          ? null
          : `${formatCountOf(drills.length, 'halt drill')} in the period; see section kill.`,
      ),
      pen_test_18_4: human(),
      vuln_scan_18_4: human(),
    },
    changes: made.map((version) => describeChange(bot_id, version)),
    kill: {
      policy_ref: human(),
      live_activations: figure('halts.of_bot', asked, cutList(halts)),
      drills: figure('halts.of_drills', { from: asked.from, to: asked.to }, cutList(drills)),
      attribution_coverage: figure('log.counts', log, attribution),
    },
    pretrade: {
      messages: figure('log.counts', log, messages),
      breaches: figure('log.counts', log, countBreaches(counts, environments)),
      overrides_15_6: overrides,
      throttle_disables_15_3: figure('log.counts', log, countKindsOrNull(counts, LATCHES)),
      limit_changes: figure('risk.limit_changes', asked, {
        of_versions: listLimitChanges(made),
        of_thresholds: await listThresholdChanges(read, period),
      }),
    },
    monitoring: {
      alerts: figure('log.alerts', log, await countAlerts(read, bot_id, range)),
      coverage_gaps: figure('log.counts', log, countKinds(counts, /^data\.(?!bars$)/)),
      unactioned: human(),
      contact_test_16_4: human(),
    },
    posttrade: {
      breaks: figure(
        'log.counts',
        log,
        countKinds(counts, /^(venue\.(mismatch|orphan)|account\.margin_call)$/),
      ),
      real_time_pct: human(),
      position_limits_17_4: figure(
        'risk.controls',
        { bot_id, version: current?.version ?? 0, limit: 'max_position_pct' },
        document.spec.risk?.['max_position_pct'] ?? null,
      ),
    },
    surveillance: {
      alerts: human(),
      timely_pct: human(),
      false_pos_rate: human(),
      annual_review_13_6: human(),
    },
    incidents: failed.slice(0, MOST_LISTED).map((task) => describeIncident(task)),
    articles: listArticleRows(gaps),
    deficiencies: [],
    attestations: {
      risk_management_9_2: null,
      technical_staff_involved_9_2: null,
      internal_audit_9_3: null,
      internal_audit_absent_reason: human(),
      senior_management_9_3: null,
    },
  };
  return withHashes(report);
}

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
  const message = `bot ${slug} did not exist in ${year}; it was created on ${formatInstant(created_at).slice(0, 10)}`;
  throw new ServiceError('invalid_request', message, {
    problems: [{ code: 'invalid_value', message, pointer: '/year' }],
  });
}

/** Sets `inputs_hash` and `content_hash` from the other fields. */
export function withHashes(report: Report): Report {
  const figures = [...fieldsIn(report)].flatMap(([, field]) =>
    field.marker === 'A' ? [field.hash] : [],
  );
  const generated_by = { ...report.generated_by, inputs_hash: digest(figures) };
  const whole = { ...report, generated_by };
  return { ...whole, content_hash: contentHash(whole) };
}

async function readHead(
  { read }: Storage,
  bot_id: string,
  { through_seq }: SeqRange,
): Promise<{ readonly seq: number; readonly hash: string } | null> {
  const head = await read
    .selectFrom('bot_events')
    .select(['seq', 'hash'])
    .where('bot_id', '=', bot_id)
    .where('seq', '=', through_seq)
    .executeTakeFirst();
  return head ?? null;
}
