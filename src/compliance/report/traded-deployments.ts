/** Deployments in which a bot traded, on paper or in production. */
import type { SessionState } from '../../events/session-state.ts';
import type { Subjects } from '../../fleet/thresholds/subjects.ts';
import type { BotDeploymentsTable, Db } from '../../storage/tables.ts';
import type { Period } from './period.ts';
import { cutList, MOST_LISTED } from './report-values.ts';

/** Lists the deployments of a bot that were open at some time in the period, newest first. */
export async function listDeployments(db: Db, bot_id: string, { from, to }: Period) {
  const rows = await db
    .selectFrom('bot_deployments as deployment')
    .leftJoin('production_deployments as production', (join) =>
      join.onRef('production.deployment_id', '=', 'deployment.deployment_id'),
    )
    .leftJoin('tasks', 'tasks.task_id', 'deployment.task_id')
    .leftJoin('trading_sessions as session', 'session.task_id', 'deployment.task_id')
    .select(['target', 'deployment.task_id', 'cluster', 'plan', 'input'])
    .select(['session.state', 'session.subjects'])
    .where('deployment.bot_id', '=', bot_id)
    .where('target', '<>', 'test')
    .where('deployment.created_at', '<', to)
    .where((is) =>
      is.or([is('deployment.ended_at', 'is', null), is('deployment.ended_at', '>=', from)]),
    )
    .orderBy('deployment.deployment_id', 'desc')
    .limit(50 * MOST_LISTED)
    .$narrowType<{ target: Exclude<BotDeploymentsTable['target'], 'test'> }>()
    .execute();
  return rows.map(({ plan, input, state, subjects, ...row }) => ({
    ...row,
    exchange: readExchange(plan) ?? readExchange(input),
    /** The trader, desk and client of its trading session; null if unknown. */
    subjects: JSON.parse(subjects ?? 'null') as Subjects | null,
    state: JSON.parse(state ?? 'null') as Partial<SessionState> | null,
  }));
}

export type Deployment = Awaited<ReturnType<typeof listDeployments>>[number];

/** Reads the exchange from a production plan or from the input of a paper session. */
function readExchange(text: string | null): string | null {
  const { exchange, live } = JSON.parse(text ?? '{}') as {
    readonly exchange?: { readonly name?: string };
    readonly live?: { readonly exchange?: string };
  };
  return exchange?.name ?? live?.exchange ?? null;
}

/** Lists the clusters, or the exchanges on which the bot traded or whose data it used. */
export function listPlaces(
  deployments: readonly Deployment[],
  of: 'cluster' | 'exchange',
): string[] {
  return [...new Set(deployments.flatMap((one) => one[of] ?? []))].toSorted();
}

export function listPositions(deployments: readonly Deployment[]) {
  const sessions = deployments.flatMap(({ task_id, target, state }) => {
    if (state?.positions === undefined) return [];
    const { time = null, equity = null, positions } = state;
    return [{ run: task_id, target, time, equity, positions }];
  });
  return cutList(sessions);
}
