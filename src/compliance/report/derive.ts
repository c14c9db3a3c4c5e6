import { getBot } from '../../bot-registry/bots.ts';
import { ServiceError } from '../../errors.ts';
import { ENGINE_VERSION } from '../../engine/version.ts';
import { formatCountOf } from '../../format.ts';
import type { Storage } from '../../storage/storage.ts';
import { packageVersion } from '../../version.ts';
import { annexI, strategyDraft, type AnnexFacts } from './annex.ts';
import { articleRows } from './article-rows.ts';
import { riskControls } from './controls.ts';
import { contentHash, digest, draft, fieldsIn, figure, Gaps, human, QUERIES } from './fields.ts';
import type { Incident, Report, VersionChange } from './payload.ts';
import {
  countEvents,
  periodOf,
  rangeOf,
  type EventCount,
  type Period,
  type SeqRange,
} from './period.ts';
import {
  administratorsOf,
  deploymentsOf,
  drillsOf,
  failedTasks,
  fleetOf,
  haltsOf,
  holdersOfHalt,
  instant,
  listed,
  MOST_LISTED,
  tasksOfKind,
  versionsOf,
  type Deployment,
  type Document,
  type EndedTask,
  type FailedTask,
  type Version,
} from './records.ts';

/** What a report is made from. */
export interface ReportService {
  readonly storage: Storage;
  /** Milliseconds since the Unix epoch. */
  readonly clock: () => number;
}

const NOTICE =
  'Facts about one bot, drafted as an annex to the yearly self-assessment of a firm under Article 9 of RTS 6 (Commission Delegated Regulation (EU) 2017/589). It states no compliance: nothing in it is assessed until people have assessed it, and a test against a simulated venue does not discharge Article 6, which asks for a test against the system of the venue or of the access provider. It is no legal advice.';

const HOUSE_NUMBERS = {
  retest_after: 'results of conformance and stress count as stale after 12 months',
  most_listed: `lists have at most ${MOST_LISTED} entries, and say how many there are`,
};

const STALE_AFTER_MS = 365 * 86_400_000;

/** Each reads a whole log. */
const MOST_AT_ONCE = 2;
let atOnce = 0;

/**
 * Drafts the report of a bot for a calendar year, as far as that has come. Nothing is changed.
 * @param year the current one by default.
 * @throws ServiceError `not_found`; `invalid_request` for a year that has not begun; `overloaded`.
 */
export async function deriveReport(
  service: ReportService,
  ref: string,
  year: number | undefined,
): Promise<Report> {
  if (atOnce >= MOST_AT_ONCE) {
    throw new ServiceError('overloaded', `${MOST_AT_ONCE} reports are being made already`, {
      remedy: 'Try again when they are done.',
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
  const range = await rangeOf(read, bot_id, period);
  const asked = { bot_id, from: instant(period.from), to: instant(period.to) };
  const gaps = new Gaps();
  sayHowMuchThereIs(gaps, period, range);

  const versions = await versionsOf(read, bot_id, period.to);
  const made = versions.filter(({ created_at }) => created_at >= period.from);
  if (versions.length > MOST_LISTED) {
    gaps.add('versions_cut', `only the last ${MOST_LISTED} versions were looked at`, [
      '5(7)',
      '11',
    ]);
  }
  const deployments = await deploymentsOf(read, bot_id, period);
  const counts = await countEvents(storage, bot_id, range);
  const log = { ...asked, ...range };
  const environments = new Map(deployments.map(({ task_id, target }) => [task_id, target]));
  const messages = byEnvironment(counts, environments);
  const failed = await failedTasks(read, bot_id, period);
  const halts = await haltsOf(read, bot_id, period);
  const drills = await drillsOf(read, period);
  const conformance = await tasksOfKind(read, bot_id, 'conformance', period.to);
  const stress = await tasksOfKind(read, bot_id, 'stress', period.to);
  const fleet = figure('bots.list', {}, await fleetOf(read));
  const current = versions.at(-1);
  const document = (current?.document ?? { spec: {} }) as Document;
  const venues = venuesOf(deployments);
  const controls = riskControls(bot_id, versions, gaps);
  const head = await headOf(storage, bot_id, range);
  sayWhatIsMissing(gaps, { counts, environments, drills: drills.length, halts: halts.length });
  sayWhatWasTried(gaps, conformance, stress);
  if (failed.length > MOST_LISTED) {
    gaps.add(
      'incidents_cut',
      `more than ${MOST_LISTED} runs failed: the others are not listed`,
      [],
    );
  }
  for (const { id } of made.map(changeIdOf)) {
    gaps.add(`approval_${id}`, `who approved the version ${id}`, ['5(2)', '5(7)']);
  }

  const report: Report = {
    schema: 'rts6-validation/1',
    status: 'draft',
    notice: NOTICE,
    number: null,
    content_hash: '',
    period: { year: period.year, from: asked.from, to: asked.to },
    as_of: instant(now),
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
        'Paragraph by paragraph. Figures marked A were read from the event log of the bot, the registry and the audit log, by the query named beside each; the period is that in which events were recorded. No sampling: all records of the period were read. Texts marked M are drafts.',
      ),
      prior_year_actions: draft(null),
    },
    annex_i: annexI(
      annexFacts(bot_id, document, asked, { deployments, venues, messages, fleet, log }),
    ),
    inventory: {
      facts: figure(
        'bot.current',
        { bot_id, version: current?.version ?? 0 },
        inventoryOf(bot, current, document, venues),
      ),
      type: draft('decision and execution: the bot decides, and its engine makes the orders'),
      approved_on: human(),
      approval_scope: human(),
      restrictions: human(),
      owner: draft(document.metadata?.owner ?? null),
      approved_operators: draft(operatorsOf(made)),
      uses_ai: draft(usesAi(document)),
      third_party: draft(venues.length === 0 ? null : `Venues and data by ${venues.join(', ')}.`),
      doc_link: human(),
    },
    risk_controls: controls,
    governance: {
      accountability_map: human(),
      administrators: figure('administrators.list', {}, await administratorsOf(read)),
      designated_approvers: human(),
      separation_evidence: draft(null),
      staff_skills_training: human(),
      holders_of_halt: figure(
        'tokens.with_halt',
        { at: instant(now) },
        await holdersOfHalt(read, now),
      ),
      compliance_kill_access_2_2: human(),
      outsourcing_4: human(),
    },
    testing: {
      methodology_ref: human(),
      env_separation_7: figure('tasks.of_kind', { bot_id, kinds: ['conformance', 'stress'] }, [
        ...conformance.map((task) => environmentOf('conformance', task)),
        ...stress.map((task) => environmentOf('stress', task)),
      ]),
      conformance: figure(
        'tasks.of_kind',
        { bot_id, kind: 'conformance', to: asked.to },
        conformance.map((task) => conformanceOf(task, current, now)),
      ),
      venue_report_ref: human(),
      stress: figure(
        'tasks.of_kind',
        { bot_id, kind: 'stress', to: asked.to },
        stress.map((task) => stressOf(task, current, now)),
      ),
      bcp_test_14_4: draft(
        drills.length === 0
          ? null
          : `${formatCountOf(drills.length, 'drill')} of the halt in the period: see kill.`,
      ),
      pen_test_18_4: human(),
      vuln_scan_18_4: human(),
    },
    changes: made.map((version) => changeOf(bot_id, version)),
    kill: {
      policy_ref: human(),
      live_activations: figure('halts.of_bot', asked, listed(halts)),
      drills: figure('halts.of_drills', { from: asked.from, to: asked.to }, listed(drills)),
      attribution_coverage: figure('log.counts', log, attributionOf(counts)),
    },
    pretrade: {
      messages: figure('log.counts', log, messages),
      breaches: figure('log.counts', log, breachesOf(counts, environments)),
      overrides_15_6: figure('log.counts', log, kindsIn(counts, /^control\.override/)),
      throttle_disables_15_3: figure(
        'log.counts',
        log,
        kindsIn(counts, /^control\.(latch|denying)/),
      ),
      limit_changes: figure('risk.limit_changes', asked, limitChangesOf(made)),
    },
    monitoring: {
      alerts: figure('log.counts', log, alertsOf(counts)),
      coverage_gaps: figure('log.counts', log, kindsIn(counts, /^data\.(?!bars$)/)),
      unactioned: human(),
      contact_test_16_4: human(),
    },
    posttrade: {
      breaks: figure(
        'log.counts',
        log,
        kindsIn(counts, /^(venue\.(mismatch|orphan)|account\.margin_call)$/),
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
    incidents: failed.slice(0, MOST_LISTED).map((task) => incidentOf(task)),
    articles: articleRows(gaps),
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

/** With the hashes of what it has by now. */
export function withHashes(report: Report): Report {
  const figures = [...fieldsIn(report)].flatMap(([, field]) =>
    field.marker === 'A' ? [field.hash] : [],
  );
  const generated_by = { ...report.generated_by, inputs_hash: digest(figures) };
  const whole = { ...report, generated_by };
  return { ...whole, content_hash: contentHash(whole) };
}

function sayHowMuchThereIs(
  gaps: Gaps,
  { year, isOver }: Period,
  { after_seq, through_seq }: SeqRange,
): void {
  if (!isOver) gaps.add('period_not_over', `the year ${year} is not over`, ['9(1)']);
  if (through_seq === after_seq) {
    gaps.add('no_events', 'the log of the bot has no event of the period', ['9(1)(a)']);
  }
}

function sayWhatIsMissing(
  gaps: Gaps,
  {
    counts,
    environments,
    drills,
    halts,
  }: {
    readonly counts: readonly EventCount[];
    readonly environments: ReadonlyMap<string, string>;
    readonly drills: number;
    readonly halts: number;
  },
): void {
  const isLive = counts.some(({ run_id }) => environments.get(run_id ?? '') === 'k8s');
  if (!isLive) {
    gaps.add('no_production', 'there is no event of production: what was counted is of paper', [
      '9(1)(a)',
    ]);
  }
  gaps.add(
    'traders_desks_clients',
    'traders, desks and clients: orders tell the bot, its version and its run',
    ['12(2)', '12(3)'],
  );
  if (drills === 0) gaps.add('no_drill', 'no drill of the halt in the period', ['12', '14(4)']);
  if (Math.max(drills, halts) > MOST_LISTED) {
    gaps.add('halts_cut', `only the first ${MOST_LISTED} halts are listed`, ['12']);
  }
  gaps.add(
    'missed_breaches',
    'how many breaches of a limit went unnoticed: the log tells only those denied',
    ['15(1)'],
  );
  if (!counts.some(({ kind }) => isAlert(kind))) {
    gaps.add('no_alerts', 'the log has no alerts, and so nothing of how fast they were', ['16(5)']);
  }
  gaps.add('no_surveillance', 'surveillance for market abuse, which is not done here', [
    '13(1)',
    '13(2)',
  ]);
  gaps.add(
    'no_external_reconciliation',
    'reconciliation with clearers, brokers and data providers',
    ['17(3)'],
  );
}

function sayWhatWasTried(
  gaps: Gaps,
  conformance: readonly EndedTask[],
  stress: readonly EndedTask[],
): void {
  if (conformance.length === 0) {
    gaps.add('conformance_not_run', 'conformance: not run', ['6(1)', '6(2)']);
  }
  gaps.add(
    'conformance_at_venue',
    "the venue's own report of a conformance test, which nothing here stands in for",
    ['6(1)(a)'],
  );
  if (stress.length === 0) gaps.add('stress_not_run', 'stress test: not run', ['10']);
}

async function headOf(
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

type Environments = ReadonlyMap<string, Deployment['target']>;

/** Events of a kind, by where their run was. */
function byEnvironment(counts: readonly EventCount[], environments: Environments) {
  const ofOrders = counts.filter(({ kind }) => kind.startsWith('order.'));
  return sumBy(ofOrders, ({ kind, run_id }) => ({
    environment: environments.get(run_id ?? '') ?? 'unknown',
    kind,
  }));
}

/** Orders that were denied before they were sent, by the control that did it. */
function breachesOf(counts: readonly EventCount[], environments: Environments) {
  const denied = counts.filter(({ kind }) => kind === 'order.denied');
  return sumBy(denied, ({ reason, run_id }) => ({
    control: reason ?? 'unknown',
    environment: environments.get(run_id ?? '') ?? 'unknown',
  })).map(({ count, ...row }) => ({ ...row, count, blocked: count, missed: null }));
}

function kindsIn(counts: readonly EventCount[], kinds: RegExp) {
  return sumBy(
    counts.filter(({ kind }) => kinds.test(kind)),
    ({ kind }) => ({ kind }),
  );
}

function isAlert(kind: string): boolean {
  return kind.startsWith('alert.');
}

/** Null, and no zero, where nothing makes any. */
function alertsOf(counts: readonly EventCount[]) {
  const alerts = kindsIn(counts, /^alert\./);
  return alerts.length === 0 ? null : alerts;
}

function attributionOf(counts: readonly EventCount[]) {
  const submitted = counts.filter(({ kind }) => kind === 'order.submitted');
  const total = submitted.reduce((sum, { count }) => sum + count, 0);
  const ofRuns = submitted.reduce(
    (sum, { run_id, count }) => sum + (run_id === null ? 0 : count),
    0,
  );
  return { orders: total, with_run: ofRuns, pct: total === 0 ? null : (100 * ofRuns) / total };
}

/** How many there are of each, in the order of what they have in common. */
function sumBy<K extends object>(
  counts: readonly EventCount[],
  keyOf: (one: EventCount) => K,
): (K & { readonly count: number })[] {
  const groups = Map.groupBy(counts, (one) => JSON.stringify(keyOf(one)));
  return [...groups]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, group]) => ({
      ...(JSON.parse(key) as K),
      count: group.reduce((sum, { count }) => sum + count, 0),
    }));
}

function venuesOf(deployments: readonly Deployment[]): string[] {
  return [...new Set(deployments.flatMap(({ exchange }) => exchange ?? []))].toSorted();
}

function annexFacts(
  bot_id: string,
  { spec }: Document,
  asked: { readonly bot_id: string; readonly from: string; readonly to: string },
  {
    deployments,
    venues,
    messages,
    fleet,
    log,
  }: {
    readonly deployments: readonly Deployment[];
    readonly venues: readonly string[];
    readonly messages: unknown;
    readonly fleet: Report['scope']['fleet'];
    readonly log: Readonly<Record<string, unknown>>;
  },
): AnnexFacts {
  const symbols = spec.universe?.symbols ?? [];
  const timeframe = spec.data?.timeframe ?? 'unknown';
  const strategy = spec.strategy?.name ?? spec.strategy?.module ?? 'unknown';
  const ofBot = (value: unknown) => figure('bot.current', { bot_id }, value);
  const ofDeployments = (value: unknown) => figure('bot.deployments', asked, value);
  const targets = [...Map.groupBy(deployments, ({ target }) => target)].map(([target, all]) => ({
    target,
    deployments: all.length,
  }));
  const clusters = [...new Set(deployments.flatMap(({ cluster }) => cluster ?? []))].toSorted();
  const traded = { venues, deployments: targets };
  return {
    'I(1)(c)': draft('Fully automated: the bot decides and its engine orders, without a person.'),
    'I(1)(d)': ofBot({ currency: spec.universe?.currency ?? null, symbols }),
    'I(1)(e)': strategyDraft(strategy, timeframe, symbols.length),
    'I(1)(g)': ofDeployments(traded),
    'I(1)(h)': ofDeployments({ clusters, venues }),
    'I(1)(i)': draft('Exchange libraries and data sources named in the spec are to be listed.'),
    'I(2)(a)': fleet,
    'I(2)(b)': ofBot({ instruments: symbols.length }),
    'I(2)(c)': ofBot({ bot_id, strategy }),
    'I(2)(d)': figure('log.counts', log, messages),
    'I(2)(e)': figure('bot.positions', asked, positionsOf(deployments)),
    'I(2)(f)': ofDeployments(traded),
    'I(3)(a)': ofBot({ strategy, instruments: symbols.length, venues: venues.length }),
    'I(3)(b)': ofBot({
      inputs: spec.data?.source ?? spec.data?.sources ?? null,
      params: spec.strategy?.params ?? {},
      models: spec.ml_models?.length ?? 0,
    }),
    'I(3)(c)': draft('One engine for all bots, of the version named above; control by one server.'),
    'I(3)(e)': draft(venues.length === 0 ? null : `Connected to ${venues.join(', ')}.`),
    'I(3)(i)': ofBot({ decides_once_each: timeframe }),
  };
}

function positionsOf(deployments: readonly Deployment[]) {
  const sessions = deployments.flatMap(({ task_id, target, state }) => {
    const known = state as {
      readonly time?: string | null;
      readonly equity?: number;
      readonly positions?: Readonly<Record<string, number>>;
    } | null;
    if (known?.positions === undefined) return [];
    const { time = null, equity = null, positions } = known;
    return [{ run: task_id, target, time, equity, positions }];
  });
  return listed(sessions);
}

function inventoryOf(
  { bot_id, slug, name, status }: Awaited<ReturnType<typeof getBot>>,
  current: Version | undefined,
  { metadata, spec }: Document,
  venues: readonly string[],
) {
  return {
    algo_id: bot_id,
    slug,
    name,
    status,
    version: current?.version ?? null,
    code_hash: current?.hash ?? null,
    bundle_hash: current?.bundle_hash ?? null,
    overview: metadata?.description ?? null,
    owner: metadata?.owner ?? null,
    strategy: spec.strategy?.name ?? spec.strategy?.module ?? null,
    instruments: spec.universe?.symbols ?? [],
    venues,
    limits_art8: spec.risk ?? null,
    model_ids: (spec.ml_models ?? []).map(
      ({ deployment_id, digest: model }) => `${deployment_id} ${model}`,
    ),
  };
}

function operatorsOf(versions: readonly Version[]): string | null {
  const names = new Set(
    versions.map(({ created_by, created_by_name }) => created_by_name ?? created_by),
  );
  return names.size === 0 ? null : `Made its versions: ${[...names].join(', ')}.`;
}

function usesAi({ spec }: Document): string {
  const models = spec.ml_models?.length ?? 0;
  const agents = spec.agents?.length ?? 0;
  if (models + agents === 0) return 'The spec names neither models nor agents.';
  return `The spec names ${formatCountOf(models, 'model')} and ${formatCountOf(agents, 'agent')}.`;
}

function changeIdOf({ version }: Version): { readonly id: string } {
  return { id: `v${version}` };
}

/** What decides how a bot trades, and under which limits. */
const MATERIAL = /^\/spec\/(strategy|risk|universe|data|engine|ml_models|agents|deployment)(\/|$)/;

function changeOf(bot_id: string, version: Version): VersionChange {
  const { changes, isCodeChanged, created_at, created_by, created_by_name, hash, bundle_hash } =
    version;
  const places = changes.map(({ pointer }) => pointer).filter((pointer) => MATERIAL.test(pointer));
  const what = [...places, ...(isCodeChanged ? ['the code of the strategy'] : [])];
  return {
    ...changeIdOf(version),
    facts: figure(
      'bot.versions',
      { bot_id, version: version.version },
      {
        when: instant(created_at),
        made_by: created_by_name ?? created_by,
        hash,
        bundle_hash,
        is_first: version.version === 1,
        is_code_changed: isCodeChanged,
        nature: listed(changes),
      },
    ),
    approved_by: human(),
    material: draft(
      version.version === 1
        ? 'The first version: new, so all of it is to be reviewed.'
        : what.length === 0
          ? 'Nothing that decides how it trades has changed.'
          : `Probably: it changes ${what.slice(0, 10).join(', ')}.`,
    ),
    review_11_ref: human(),
    notified: human(),
  };
}

function limitChangesOf(versions: readonly Version[]) {
  return listed(
    versions.flatMap(({ version, created_at, created_by, created_by_name, changes }) =>
      changes
        .filter(({ pointer }) => pointer === '/spec/risk' || pointer.startsWith('/spec/risk/'))
        .map((change) => ({
          when: instant(created_at),
          by: created_by_name ?? created_by,
          version,
          ...change,
        })),
    ),
  );
}

function incidentOf(task: FailedTask): Incident {
  return {
    id: task.task_id,
    facts: figure('tasks.failed', { task_id: task.task_id }, task),
    impact: human(),
    root_cause: draft(task.detail === null ? null : `The run failed: ${task.detail}`),
    remedy: human(),
    closed: human(),
  };
}

/** Of another version or engine than now, or too old: by our number of months, not the law's. */
function isStale(task: EndedTask, current: Version | undefined, now: number): boolean {
  const { lock } = task.result as { readonly lock?: { readonly engine?: unknown } };
  const engine = lock?.engine;
  return (
    task.version !== current?.version ||
    (typeof engine === 'string' && engine !== ENGINE_VERSION) ||
    now - task.ended_at > STALE_AFTER_MS
  );
}

function environmentOf(kind: string, { task_id, result }: EndedTask) {
  const { environment, isolation } = result;
  return { kind, run_id: task_id, environment: environment ?? null, isolation: isolation ?? null };
}

function conformanceOf(task: EndedTask, current: Version | undefined, now: number) {
  const { result, task_id, version } = task;
  const cases = Array.isArray(result['cases'])
    ? (result['cases'] as Record<string, unknown>[])
    : [];
  return {
    run_id: task_id,
    version,
    ended_at: instant(task.ended_at),
    environment: result['environment'] ?? null,
    discharges_art6: false,
    seed: result['seed'] ?? null,
    evidence_hash: result['evidence_hash'] ?? null,
    stale: isStale(task, current, now),
    counts: result['counts'] ?? null,
    not_passed: cases
      .filter(({ status }) => status !== 'pass')
      .map(({ id, status, reason }) => ({ id, status, reason: reason ?? null })),
  };
}

function stressOf(task: EndedTask, current: Version | undefined, now: number) {
  const { result, task_id, version } = task;
  const of = (name: string): unknown => result[name] ?? null;
  return {
    run_id: task_id,
    version,
    ended_at: instant(task.ended_at),
    scope: of('scope'),
    basis: of('basis'),
    coverage_days: of('coverage_days'),
    peaks: of('peaks'),
    targets: of('targets'),
    passes: of('passes'),
    verdict: of('verdict'),
    reasons: of('reasons'),
    assumption: of('assumption'),
    stale: isStale(task, current, now),
  };
}
