import { withNames } from '../../identity/actor-names.ts';
import type { Db } from '../../storage/tables.ts';
import { appliesTo, type Subjects } from '../../fleet/thresholds/subjects.ts';
import { listThresholds, findUnattributed } from '../../fleet/thresholds/thresholds.ts';
import { figure, reportedLimit, type Gaps } from './report-fields.ts';
import type { ReportedLimit } from './payload.ts';
import { formatInstant, type Period, type SeqRange } from './period.ts';
import { cutList, type Document } from './records.ts';

/** Maximum latency of an alert under Article 16(5). */
const LATEST_MS = 5000;
const AT_ONCE = 4096;

/** Counts alerts and their latency; null without alerts, as the bot may not produce any. */
export async function countAlerts(db: Db, bot_id: string, { after_seq, through_seq }: SeqRange) {
  const found = {
    raised: 0,
    latency_unknown: 0,
    latency_max_ms: null as number | null,
    over_5s: 0,
  };
  for (let after = after_seq; ;) {
    const rows = await db
      .selectFrom('bot_events')
      .select(['seq', 'payload'])
      .where('bot_id', '=', bot_id)
      .where('kind', '=', 'alert.raised')
      .where('seq', '>', after)
      .where('seq', '<=', through_seq)
      .orderBy('seq')
      .limit(AT_ONCE)
      .execute();
    for (const { payload } of rows) {
      const ms = readLatency(payload);
      found.raised += 1;
      if (ms === null) found.latency_unknown += 1;
      else {
        found.latency_max_ms = Math.max(found.latency_max_ms ?? 0, ms);
        if (ms > LATEST_MS) found.over_5s += 1;
      }
    }
    if (rows.length < AT_ONCE) return found.raised === 0 ? null : found;
    after = rows.at(-1)!.seq;
  }
}

/** Returns null also for a payload that is not JSON because it was tampered with. */
function readLatency(payload: string): number | null {
  try {
    const { latency_ms } = JSON.parse(payload) as { readonly latency_ms?: unknown };
    return typeof latency_ms === 'number' ? latency_ms : null;
  } catch {
    return null;
  }
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
  const named = await withNames(db, rows, 'requested_by', 'verified_by', 'authorised_by');
  return cutList(
    named.map((row) => ({
      override_id: row.override_id,
      run: row.run_id,
      order: `${row.side} up to ${row.max_quantity} ${row.symbol}`,
      worst_price: row.worst_price,
      controls: JSON.parse(row.controls) as readonly string[],
      reason: row.reason,
      requested_by: row.requested_by_name ?? row.requested_by,
      requested_at: formatInstant(row.requested_at),
      verified_by: row.verified_by_name ?? row.verified_by,
      authorised_by: row.authorised_by_name ?? row.authorised_by,
      expires_at: formatInstant(row.expires_at),
      used_at: row.used_at === null ? null : formatInstant(row.used_at),
      used_order: row.used_order,
    })),
  );
}

export function subjectsIn({ spec: { universe, attribution } }: Document): Subjects {
  const { trader = null, desk = null, client = null } = attribution ?? {};
  const { currency = '', symbols = [] } = universe ?? {};
  return { currency, trader, desk, client, symbols };
}

/** Lists the thresholds that apply to a bot. @param before ms since the epoch. */
export async function reportThresholds(
  db: Db,
  asked: Readonly<Record<string, string>>,
  subjects: Subjects,
  before: number,
  gaps: Gaps,
): Promise<ReportedLimit[]> {
  const all = await listThresholds(db, { history: true });
  const newest = Map.groupBy(
    all.filter(({ set_at, currency }) => set_at < before && currency === subjects.currency),
    ({ level, subject }) => JSON.stringify([level, subject]),
  );
  const inForce = [...newest.values()].map((versions) => versions.at(-1)!);
  const known = inForce.filter(({ limits }) => limits !== null);
  for (const { level } of findUnattributed(subjects, known)) {
    const id = `unnamed_${level}`;
    if (gaps.list.some((gap) => gap.id === id)) continue;
    gaps.add(id, `the ${level} for which the bot trades; thresholds exist for others`, ['15(5)']);
  }
  const own = known.filter(({ level, subject }) => appliesTo(subjects, level, subject));
  if (own.length === 0) {
    gaps.add(
      'no_thresholds',
      'thresholds of the firm, or of the trader, desk or client for whom the bot trades',
      ['15(5)'],
    );
  }
  const named = await withNames(db, own, 'set_by');
  return named.map(({ level, subject, currency, version, limits, rationale, ...row }) => {
    const facts = {
      value: limits,
      currency,
      hard_or_soft: 'hard: the engine denies the order',
      since_version: version,
      last_calibrated: formatInstant(row.set_at),
      set_by: row.set_by_name ?? row.set_by,
      rationale,
    };
    const id = `threshold_${level}_${subject}_${currency}`;
    const params = { ...asked, level, subject, currency };
    return reportedLimit(id, ['15(5)'], figure('risk.thresholds', params, facts));
  });
}

/** Lists all threshold changes of the period, including those that do not apply to the bot now. */
export async function listThresholdChanges(db: Db, { from, to }: Period) {
  const rows = await db
    .selectFrom('thresholds')
    .selectAll()
    .where('set_at', '>=', from)
    .where('set_at', '<', to)
    .orderBy('set_at')
    .orderBy('level')
    .orderBy('subject')
    .execute();
  const named = await withNames(db, rows, 'set_by');
  return cutList(
    named.map(({ level, subject, currency, version, limits, rationale, ...row }) => ({
      when: formatInstant(row.set_at),
      by: row.set_by_name ?? row.set_by,
      level,
      subject,
      currency,
      version,
      limits: limits === null ? null : (JSON.parse(limits) as unknown),
      rationale,
    })),
  );
}
