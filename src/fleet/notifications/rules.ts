import { v7 as uuidv7 } from 'uuid';
import { ServiceError, type Problem } from '../../base/errors.ts';
import type { NotificationCondition } from '../../base/notifications.ts';
import { appendAudit, type Actor } from '../../identity/audit.ts';
import type { StorageService } from '../../storage/storage.ts';
import type { Db, NotificationRulesTable } from '../../storage/tables.ts';
import { getBotId } from '../registry/bots.ts';
import type { Channels } from './channels.ts';

/** Amount that a condition needs, and its limits; null for conditions without one. */
const AMOUNTS: Readonly<
  Record<
    NotificationCondition,
    { readonly unit: string; readonly least: number; readonly most: number } | null
  >
> = {
  halted: null,
  error: null,
  drawdown: { unit: 'a fraction of the highest equity', least: 0.0001, most: 0.9999 },
  no_bars: { unit: 'a number of seconds', least: 5, most: 31_536_000 },
  lease: { unit: 'a number of hours', least: 1, most: 8760 },
};

export type NotificationRule = Readonly<Omit<NotificationRulesTable, 'bot_ids'>> & {
  /** Null for all bots. */
  readonly bot_ids: readonly string[] | null;
};

export interface NewRule {
  readonly name: string;
  readonly condition: NotificationCondition;
  readonly amount?: number | undefined;
  /** Ids or slugs; by default all bots. */
  readonly bots?: readonly string[] | undefined;
  readonly channel: string;
}

/**
 * Adds a rule. For `halted` and `error`, it covers only what happens from now on.
 * @throws ServiceError `invalid_request`; `not_found` for a bot; `conflict` for a name that exists or
 * an unknown channel.
 */
export async function addRule(
  { storage, clock }: StorageService,
  by: Actor,
  channels: Channels,
  { name, condition, amount, bots, channel }: NewRule,
): Promise<NotificationRule> {
  const problems = problemsOf(condition, amount, bots);
  if (problems.length > 0) {
    throw new ServiceError('invalid_request', problems[0]!.message, { problems });
  }
  requireChannel(channels, channel);
  return storage.write(async (tx) => {
    const now = clock();
    const before = await find(tx, name);
    if (before !== undefined) {
      throw new ServiceError('conflict', `there is already a rule ${name}`, {
        reason: 'exists',
        remedy: 'Choose another name, or remove the rule first.',
      });
    }
    const bot_ids = bots && (await Promise.all(bots.map((ref) => getBotId(tx, ref))));
    const rule: NotificationRule = {
      rule_id: uuidv7({ msecs: now }),
      name,
      condition,
      amount: amount ?? null,
      bot_ids: bot_ids === undefined ? null : [...new Set(bot_ids)],
      channel,
      created_by: by,
      created_at: now,
    };
    const { rule_id, created_by: _by, created_at: _at, ...details } = rule;
    await appendAudit(tx, now, {
      actor: by,
      action: 'notifications.rules.add',
      target: `notification_rule:${rule_id}`,
      details,
    });
    await tx
      .insertInto('notification_rules')
      .values({ ...rule, bot_ids: rule.bot_ids && JSON.stringify(rule.bot_ids) })
      .execute();
    return rule;
  });
}

/** Removes a rule; its notifications are still sent. @throws ServiceError `not_found` */
export async function removeRule(
  { storage, clock }: StorageService,
  by: Actor,
  name: string,
): Promise<void> {
  await storage.write(async (tx) => {
    const rule = await find(tx, name);
    if (rule === undefined) {
      throw new ServiceError('not_found', `there is no rule ${JSON.stringify(name)}`, {
        remedy: 'See `service-local notifications list`.',
      });
    }
    const { rule_id } = rule;
    await appendAudit(tx, clock(), {
      actor: by,
      action: 'notifications.rules.remove',
      target: `notification_rule:${rule_id}`,
      details: { name },
    });
    await tx.deleteFrom('notification_rules').where('rule_id', '=', rule_id).execute();
  });
}

/** Lists all rules by name. */
export async function listRules(db: Db): Promise<NotificationRule[]> {
  const rows = await db.selectFrom('notification_rules').selectAll().orderBy('name').execute();
  return rows.map(({ bot_ids, ...row }) => ({
    ...row,
    bot_ids: bot_ids === null ? null : (JSON.parse(bot_ids) as string[]),
  }));
}

/** @throws ServiceError `conflict`, reason `unknown_channel` */
export function requireChannel(channels: Channels, name: string): void {
  if (channels.has(name)) return;
  const names = [...channels.keys()];
  throw new ServiceError('conflict', `the server has no channel ${JSON.stringify(name)}`, {
    reason: 'unknown_channel',
    remedy: `${names.length > 0 ? `Choose one of ${names.join(', ')}, or add` : 'Add'} it to the file that \`service-local config explain notifications_file\` names on the server, and restart the server.`,
  });
}

function find(tx: Db, name: string) {
  return tx
    .selectFrom('notification_rules')
    .select('rule_id')
    .where('name', '=', name)
    .executeTakeFirst();
}

function problemsOf(
  condition: NotificationCondition,
  amount: number | undefined,
  bots: readonly string[] | undefined,
): readonly Problem[] {
  const problem = (pointer: string, message: string): Problem => ({
    code: 'invalid_value',
    pointer,
    message,
  });
  if (condition === 'lease' && bots !== undefined) {
    return [problem('/bots', 'the condition lease does not depend on bots')];
  }
  const rule = AMOUNTS[condition];
  if (rule === null) {
    return amount === undefined
      ? []
      : [problem('/amount', `the condition ${condition} has no amount`)];
  }
  const { unit, least, most } = rule;
  if (amount !== undefined && amount >= least && amount <= most) return [];
  const needs = `the condition ${condition} needs ${unit} from ${least} to ${most}`;
  const code = amount === undefined ? 'missing_field' : 'invalid_value';
  return [{ ...problem('/amount', needs), code }];
}
