/** Limits on the orders of a bot: in its spec, by thresholds of the firm, and by overrides. */
import type { LimitName } from '../../base/risk-limits.ts';
import { ITEM_FIELDS } from '../../base/validation-report-fields.ts';
import { appliesTo, type Subjects } from '../../fleet/thresholds/subjects.ts';
import { findUnattributed, listThresholds } from '../../fleet/thresholds/thresholds.ts';
import type { Db } from '../../storage/tables.ts';
import { digest } from '../evidence-digest.ts';
import { composeFields, figure } from './report-fields.ts';
import { formatInstant, formatInstantOrNull, type Period } from './period.ts';
import { cutList, nameActors } from './report-values.ts';
import type { Figure, Gap, ReportedLimit } from './validation-report.ts';
import type { Document, Version } from './version-changes.ts';

/** The paragraphs that each limit of the spec implements. */
const IMPLEMENTED_PARAGRAPHS: Readonly<Record<string, readonly string[]>> = {
  max_order_value: ['15(1)(b)', '8(b)'],
  max_order_qty: ['15(1)(c)', '8(b)'],
  price_collar_bps: ['15(1)(a)', '8(b)'],
  max_messages_per_second: ['15(1)(d)'],
  max_position_pct: ['15(4)', '8(c)'],
  max_daily_loss_pct: ['15(4)'],
  max_drawdown_pct: ['15(4)'],
  max_instruments: ['8(a)'],
  price_collar_period: ['15(1)(a)'],
  messages_kept_for_cancels: ['15(1)(d)'],
  repeated_execution: ['15(3)'],
} satisfies Readonly<Record<Exclude<LimitName, 'permitted'>, readonly string[]>>;

/** Paragraphs that require a limit, with the text for the gap if the spec has no such limit. */
const REQUIRED_LIMITS = {
  '8(a)': 'limit on the number of instruments',
  '8(b)': 'limit on the price, value or number of orders',
  '8(c)': 'limit on positions',
  '8(d)': 'limit on the number of venues',
  '15(1)(a)': 'price collar',
  '15(1)(b)': 'limit on the value of an order',
  '15(1)(c)': 'limit on the volume of an order',
  '15(1)(d)': 'limit on messages',
  '15(3)': 'limit on repeated automated execution',
  '15(4)': 'limit on market or credit risk',
  '15(5)': 'permission to trade the instruments',
} as const;

const HARD = 'hard: the engine denies the order';

/** Lists the limits in a spec, which the engine checks before every order. */
function listSpecLimits(version: Version | undefined) {
  return Object.entries(version?.document.spec.risk ?? {}).map(([id, value]) => ({
    id,
    value,
    /** The paragraphs that it implements. */
    articles:
      id === 'permitted' ? listPermittedParagraphs(value) : (IMPLEMENTED_PARAGRAPHS[id] ?? []),
    /** Reason why it is unlimited; null for a limit. */
    unlimited: getUnlimitedReason(value),
  }));
}

/** An absent list permits everything, so only lists that are present implement a paragraph. */
function listPermittedParagraphs(permitted: unknown): string[] {
  const lists = Object(permitted) as Readonly<Record<string, unknown>>;
  return [
    ...(Array.isArray(lists['instruments']) ? ['8(a)', '15(5)'] : []),
    ...(Array.isArray(lists['venues']) ? ['8(d)'] : []),
  ];
}

function getUnlimitedReason(limit: unknown): string | null {
  if (typeof limit !== 'object' || limit === null || !('unlimited' in limit)) return null;
  return String(limit.unlimited);
}

/** Finds limits that are unlimited or unknown, and paragraphs that no limit implements. */
export function findLimitGaps(version: Version | undefined): Gap[] {
  const gaps: Gap[] = [];
  const implemented = new Set<string>();
  for (const { id, articles, unlimited } of listSpecLimits(version)) {
    if (unlimited === null) for (const ref of articles) implemented.add(ref);
    else
      gaps.push({ id: `unlimited_${id}`, missing: `${id} is unlimited: ${unlimited}`, articles });
    if (articles.length > 0 || id === 'permitted') continue;
    const missing = `which paragraphs the limit ${id} implements`;
    gaps.push({ id: `unknown_${id}`, missing, articles });
  }
  for (const [ref, what] of Object.entries(REQUIRED_LIMITS)) {
    if (implemented.has(ref)) continue;
    gaps.push({ id: `no_control_${ref}`, missing: `the spec has no ${what}`, articles: [ref] });
  }
  return gaps;
}

/** Reports the limits of the current version. */
export function reportSpecLimits(bot_id: string, versions: readonly Version[]): ReportedLimit[] {
  const current = versions.at(-1);
  return listSpecLimits(current).map(({ id, value, articles, unlimited }) => {
    const { version, created_at } = findCalibration(versions, id);
    const params = { bot_id, version: current!.version, limit: id };
    const facts = figure('risk.controls', params, {
      value: unlimited === null ? value : null,
      unlimited,
      hard_or_soft: HARD,
      since_version: version,
      last_calibrated: formatInstant(created_at),
    });
    return reportLimit(id, articles, facts);
  });
}

/** Finds the version that set the limit to its current value. */
function findCalibration(versions: readonly Version[], id: string): Version {
  const values = versions.map(({ document }) => digest(document.spec.risk?.[id] ?? null));
  return versions[values.findLastIndex((value) => value !== values.at(-1)) + 1]!;
}

export function reportLimit(id: string, articles: readonly string[], facts: Figure): ReportedLimit {
  return { id, articles, ...composeFields(ITEM_FIELDS.risk_controls, { facts }) };
}

export function subjectsIn({ spec: { universe, attribution } }: Document): Subjects {
  const { trader = null, desk = null, client = null } = attribution ?? {};
  const { currency = '', symbols = [] } = universe ?? {};
  return { currency, trader, desk, client, symbols };
}

/** All versions of the thresholds of the firm, and those in force for a bot at the end of a period. */
export async function readThresholds(db: Db, subjects: Subjects, { from, to }: Period) {
  const all = await nameActors(db, await listThresholds(db, { history: true }), 'set_by');
  const newest = Map.groupBy(
    all.filter(({ set_at, currency }) => set_at < to && currency === subjects.currency),
    ({ level, subject }) => JSON.stringify([level, subject]),
  );
  const inForce = [...newest.values()]
    .map((versions) => versions.at(-1)!)
    .filter(({ limits }) => limits !== null);
  return {
    /** Set or removed in the period, whether or not they apply to the bot now. */
    changes: all
      .filter(({ set_at }) => set_at >= from && set_at < to)
      .toSorted((a, b) => a.set_at - b.set_at),
    own: inForce.filter(({ level, subject }) => appliesTo(subjects, level, subject)),
    /** Levels with thresholds at which the bot has no attribution. */
    unnamed: [...new Set(findUnattributed(subjects, inForce).map(({ level }) => level))],
  };
}

type Thresholds = Awaited<ReturnType<typeof readThresholds>>;

export function findThresholdGaps({ own, unnamed }: Thresholds): Gap[] {
  const gaps = unnamed.map((level) => ({
    id: `unnamed_${level}`,
    missing: `the ${level} for which the bot trades; thresholds exist for others`,
    articles: ['15(5)'],
  }));
  if (own.length > 0) return gaps;
  const missing =
    'thresholds of the firm, or of the trader, desk or client for whom the bot trades';
  return [...gaps, { id: 'no_thresholds', missing, articles: ['15(5)'] }];
}

/** Reports the thresholds that apply to a bot. @param asked parameters of the query. */
export function reportThresholds({ own }: Thresholds, asked: object): ReportedLimit[] {
  return own.map(({ level, subject, currency, version, limits, rationale, set_at, set_by }) => {
    const facts = figure(
      'risk.thresholds',
      { ...asked, level, subject, currency },
      {
        value: limits,
        currency,
        hard_or_soft: HARD,
        since_version: version,
        last_calibrated: formatInstant(set_at),
        set_by,
        rationale,
      },
    );
    return reportLimit(`threshold_${level}_${subject}_${currency}`, ['15(5)'], facts);
  });
}

export function listThresholdChanges({ changes }: Thresholds) {
  return cutList(
    changes.map(({ set_at, set_by, level, subject, currency, version, limits, rationale }) => ({
      when: formatInstant(set_at),
      by: set_by,
      level,
      subject,
      currency,
      version,
      limits,
      rationale,
    })),
  );
}

/** Lists requests to let an order exceed a limit, with their approvals. */
export async function listOverrides(db: Db, bot_id: string, { from, to }: Period) {
  const rows = await db
    .selectFrom('overrides')
    .selectAll()
    .where('bot_id', '=', bot_id)
    .where('requested_at', '>=', from)
    .where('requested_at', '<', to)
    .orderBy('override_id')
    .execute();
  const named = await nameActors(db, rows, 'requested_by', 'verified_by', 'authorized_by');
  return cutList(
    named.map((row) => ({
      override_id: row.override_id,
      run: row.run_id,
      order: `${row.side} up to ${row.max_quantity} ${row.symbol}`,
      worst_price: row.worst_price,
      controls: JSON.parse(row.controls) as readonly string[],
      reason: row.reason,
      requested_by: row.requested_by,
      requested_at: formatInstant(row.requested_at),
      verified_by: row.verified_by,
      authorized_by: row.authorized_by,
      expires_at: formatInstant(row.expires_at),
      used_at: formatInstantOrNull(row.used_at),
      used_order: row.used_order,
    })),
  );
}
