import { MINUTE } from '../../base/durations.ts';
import type { NotificationCondition } from '../../base/notifications.ts';
import { printableLine } from '../../base/printable.ts';
import type { Db } from '../../storage/tables.ts';
import { readNames } from '../registry/bot-slugs.ts';
import { findDelivered, type NewDelivery } from './deliveries.ts';
import type { Notice } from './notices.ts';
import {
  EVENT_FINDERS,
  findDrawdowns,
  findExpiringLeases,
  findSilentSessions,
  type Occurrence,
  type OwnLease,
} from './occurrences.ts';
import type { NotificationRule } from './rules.ts';

export interface ScanContext {
  readonly read: Db;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** Events before this time were compared with the rules already, ms since the Unix epoch. */
  readonly scannedUntil: number;
  readonly ownLease: () => OwnLease | null;
  /** Origin of the console. */
  readonly origin: string;
}

/**
 * Events can become visible after others that were recorded later, by the time that a write waits and
 * by the difference of clocks.
 */
const OVERLAP_MS = 2 * MINUTE;

/** Deliveries of a rule that one evaluation adds; later evaluations add the others. */
const MOST_AT_ONCE = 2000;

/** Finds the deliveries that these rules require and that do not exist yet. */
export async function findNotices(
  context: ScanContext,
  rules: readonly NotificationRule[],
): Promise<NewDelivery[]> {
  const { read, origin } = context;
  const found: Occurrence[] = [];
  for (const [condition, same] of Map.groupBy(rules, (rule) => rule.condition)) {
    found.push(...(await FINDERS[condition](context, same)));
  }
  if (found.length === 0) return [];
  const delivered = await findDelivered(
    read,
    rules.map(({ rule_id }) => rule_id),
    [...new Set(found.map(({ key }) => key))],
  );
  const matches = rules.flatMap((rule) => {
    const isNew = (one: Occurrence): boolean =>
      isAbout(rule, one) && !delivered.has(`${rule.rule_id} ${one.key}`);
    // Repeated alerts have one key, and must not count as several occurrences.
    return [...Map.groupBy(found.filter(isNew), ({ key }) => key).values()]
      .slice(0, MOST_AT_ONCE)
      .map(([first]) => ({ rule, occurrence: first! }));
  });
  const names = await readNames(
    read,
    matches.flatMap(({ occurrence }) => occurrence.bot_id ?? []),
  );
  return matches.map(({ rule, occurrence }) => ({
    rule,
    occurrence: occurrence.key,
    channel: rule.channel,
    notice: noticeOf(rule, occurrence, names, origin),
  }));
}

type Finder = (
  context: ScanContext,
  rules: readonly NotificationRule[],
) => Promise<readonly Occurrence[]>;

const FINDERS: Readonly<Record<NotificationCondition, Finder>> = {
  halted: ({ read, ...scan }, rules) => EVENT_FINDERS.halted(read, sinceOf(scan, rules)),
  error: ({ read, ...scan }, rules) => EVENT_FINDERS.error(read, sinceOf(scan, rules)),
  drawdown: ({ read }, rules) => findDrawdowns(read, Math.min(...amountsOf(rules))),
  no_bars: ({ read, now }, rules) => findSilentSessions(read, now, Math.min(...amountsOf(rules))),
  lease: ({ read, now, ownLease }, rules) =>
    findExpiringLeases(read, now, Math.max(...amountsOf(rules)), ownLease()),
};

function sinceOf(
  { scannedUntil }: Pick<ScanContext, 'scannedUntil'>,
  rules: readonly NotificationRule[],
): number {
  const created = Math.min(...rules.map(({ created_at }) => created_at));
  return Math.max(created, scannedUntil - OVERLAP_MS);
}

function amountsOf(rules: readonly NotificationRule[]): number[] {
  return rules.map(({ amount }) => amount!);
}

function isAbout(rule: NotificationRule, { condition, bot_id, at, measure }: Occurrence): boolean {
  if (rule.condition !== condition) return false;
  // A halt of all bots concerns selected bots, too.
  if (rule.bot_ids !== null && bot_id !== null && !rule.bot_ids.includes(bot_id)) return false;
  if (measure === null) return at >= rule.created_at;
  return condition === 'lease' ? measure <= rule.amount! : measure >= rule.amount!;
}

function noticeOf(
  { name: rule }: NotificationRule,
  { type, at, bot_id, text, details }: Occurrence,
  names: Awaited<ReturnType<typeof readNames>>,
  origin: string,
): Notice {
  const named = bot_id === null ? undefined : names.get(bot_id);
  const bot = named === undefined ? null : { id: bot_id!, ...named };
  const summary = printableLine(bot === null ? text : `${bot.name} ${text}`);
  const page = bot === null ? '/console' : `/console/bots/${bot.slug}`;
  return {
    type,
    timestamp: new Date(at).toISOString(),
    data: { rule, summary, bot, url: `${origin}${page}`, details },
  };
}
