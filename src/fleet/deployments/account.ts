import { readBundle, getVersion } from '../registry/versions.ts';
import { readChangedSpec } from '../../bots/hosted.ts';
import { engineConfig, type BotSpec } from '../../bots/spec.ts';
import type { Opening } from '../../trading/opening.ts';
import type { Problem } from '../../base/errors.ts';
import type { Db, TradingSessionsTable } from '../../storage/tables.ts';
import type { Claim } from '../tasks/claim.ts';
import { openAfterSession, readSession } from '../tasks/session-record.ts';
import { stepOf } from '../../trading/session-events.ts';
import { openingFrom, openingProblems, type AccountRules } from '../../trading/opening.ts';
import { refuseArchived } from '../../events/archive/archived-events.ts';
import { readRows } from '../../events/read-events.ts';
import type { SessionState } from '../../events/session-state.ts';
import { parseOpening, type ProductionPlan } from './production-plan.ts';

export function readAccountRules(bot: BotSpec): AccountRules {
  return { symbols: bot.spec.universe.symbols, model: engineConfig(bot).account.model };
}

/** @param text a deployment plan, as JSON. */
export async function readPlannedRules(db: Db, text: string): Promise<AccountRules> {
  const { bot_id, version, params } = JSON.parse(text) as ProductionPlan;
  const found = await getVersion(db, bot_id, version);
  const files = await readBundle(db, bot_id, found);
  return readAccountRules(readChangedSpec(JSON.parse(found.document), { params }, files).spec);
}

/** Reads the account that a deployment left; null if it recorded nothing and began with the cash of its spec. */
export async function openAfter(
  tx: Db,
  { task_id }: Pick<Claim, 'task_id'>,
): Promise<Opening | null> {
  const { state: text, batches } = await readSession(tx, task_id);
  const { opening, bot_id } = await tx
    .selectFrom('production_deployments')
    .innerJoin('tasks', 'tasks.deployment_id', 'production_deployments.deployment_id')
    .select(['opening', 'tasks.bot_id'])
    .where('task_id', '=', task_id)
    .executeTakeFirstOrThrow();
  const before = opening === null ? null : parseOpening(opening);
  if (batches === 0) return before;
  const state = JSON.parse(text) as SessionState;
  const unpriced = Object.keys(state.positions).filter(
    (symbol) => state.carry?.marks[symbol] === undefined,
  );
  const closes = await lastCloses(tx, { bot_id, task_id }, unpriced);
  return openingFrom(state, (symbol) => closes.get(symbol), before);
}

export function withoutRisk(opening: Opening | null): Opening | null {
  return opening && { cash: opening.cash, positions: opening.positions };
}

/**
 * Finds reasons why a bot cannot continue the account of a deployment that still trades, whose working
 * orders may be filled before it ends.
 */
export async function replacementProblems(
  tx: Db,
  task_id: string,
  rules: AccountRules,
): Promise<readonly Problem[]> {
  const opening = await openAfter(tx, { task_id });
  if (opening === null) return [];
  const { working } = JSON.parse((await readSession(tx, task_id)).state) as SessionState;
  const missing = working.filter(({ symbol }) => !rules.symbols.includes(symbol));
  return [
    ...openingProblems(opening, rules),
    ...missing.map(({ order, symbol }) => ({
      code: 'position_not_in_universe',
      pointer: '/spec/universe/symbols',
      message: `the account to continue has a working order ${order} for ${symbol}, which the bot does not trade`,
    })),
  ];
}

/**
 * Opening of an account of `cash` that carries over, in proportion, the bot's losses in its last
 * deployment to the same kind of venue; null if there was none.
 */
export function openAfterDeployment(
  tx: Db,
  { bot_id, venue }: Pick<ProductionPlan, 'bot_id' | 'venue'>,
  cash: number,
): Promise<Opening | null> {
  return openAfterSession(tx, { bot_id, kind: 'production' }, cash, ({ plan }) => {
    return plan !== null && (JSON.parse(plan) as ProductionPlan).venue === venue;
  });
}

/** Number of steps that are searched for a price at a time. */
const STEPS_AT_ONCE = 1000;

async function lastCloses(
  tx: Db,
  { bot_id, task_id }: Pick<TradingSessionsTable, 'bot_id' | 'task_id'>,
  symbols: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const closes = new Map<string, number>();
  const isDone = (): boolean => symbols.every((symbol) => closes.has(symbol));
  for (let before = Number.MAX_SAFE_INTEGER; !isDone();) {
    const range = { after_seq: 0, until_seq: before - 1, kinds: ['data.bars'], run_id: task_id };
    const page = await readRows(tx, bot_id, { ...range, limit: STEPS_AT_ONCE, last: true });
    const { rows, archived_seq } = page;
    for (const { payload } of rows.toReversed()) {
      for (const [symbol, { close }] of Object.entries(stepOf(payload).bars)) {
        if (!closes.has(symbol)) closes.set(symbol, close);
      }
    }
    if (!isDone() && archived_seq > 0) await refuseArchived(tx, bot_id, archived_seq);
    if (rows.length < STEPS_AT_ONCE) break;
    before = rows[0]!.seq;
  }
  return closes;
}
