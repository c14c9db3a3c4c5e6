import { haltFailure, isHaltReason } from '../api/halt-failure.ts';
import type { Halt, HaltReport, listHalts } from '../api/halts.ts';
import type { Client } from '../client/client.ts';
import { ServiceError } from '../base/errors.ts';
import { formatActor, formatCountOf } from '../base/format.ts';
import { showItems, type Columns } from './show-items.ts';
import type { Output } from './output.ts';
import type { Answer } from './verb.ts';

export const REASON_OPTION = {
  value: 'text',
  description: 'why; recorded with the halt and in the audit log',
  required: true,
} as const;

export const HALT_COLUMNS: Columns<Halt> = {
  halt: ({ halt_id }) => halt_id,
  of: ({ bot_id, bot_slug }) => bot_slug ?? bot_id ?? 'all bots',
  'in force': ({ lifted_at }) => (lifted_at === null ? 'yes' : 'no'),
  reason: ({ reason }) => reason,
  by: ({ requested_by, requested_by_name }) => formatActor(requested_by, requested_by_name),
  since: ({ requested_at }) => requested_at,
  lifted: ({ lifted_at }) => lifted_at ?? '',
  ended: ({ deployments }) => String(deployments),
};

/** Finds the halt of all bots that is in force. The server lists halts in force first. */
export async function haltOfAll(server: Client): Promise<Halt | undefined> {
  for await (const halt of server.items<typeof listHalts>('get', '/halts', {})) {
    if (halt.lifted_at !== null) return undefined;
    if (halt.scope === 'all') return halt;
  }
  return undefined;
}

/**
 * Requests a halt.
 * @throws ServiceError `halt_not_verified` if the halt failed, stating whether it is in force; an
 *   error that the server returned keeps its own code.
 */
export async function requestHalt(ask: () => Promise<HaltReport>): Promise<HaltReport> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const isRefusal = !isHaltReason(error.reason) && !error.retryable && error.code !== 'failure';
    if (isRefusal) throw error;
    const isExcluded = error.reason === 'not_sent' || error.code === 'rate_limited';
    const { message, reason, remedy } = haltFailure(error, isExcluded);
    throw new ServiceError('halt_not_verified', message, {
      reason: reason!,
      remedy: remedy!,
      cause: error,
    });
  }
}

type Deployment = HaltReport['deployments'][number];

const FAULT_COLUMNS: Columns<Deployment> = {
  bot: ({ bot_id, bot_slug }) => bot_slug ?? bot_id,
  deployment: ({ deployment_id }) => deployment_id,
  status: ({ status }) => status,
  'not verified': ({ faults }) => faults.join(', '),
  orders: ({ orders }) =>
    orders
      .filter(({ verified }) => !verified)
      .map(({ order, symbol }) => `${order} (${symbol})`)
      .join(', '),
};

export function haltAnswer(report: HaltReport): Answer {
  const failure = failureOf(report);
  return { data: report, show: (out) => showReport(out, report), failure };
}

function failureOf({
  halt_id,
  verified,
  in_force,
  deployments,
}: HaltReport): ServiceError | undefined {
  if (verified) return undefined;
  const count = deployments.filter((one) => !one.verified).length;
  const what = in_force
    ? `${count} of ${formatCountOf(deployments.length, 'deployment')} could not be verified`
    : 'it could not be verified that the halt is in force';
  const isAtVenue = deployments.some(({ target, verified: isSo }) => target === 'k8s' && !isSo);
  return new ServiceError('halt_not_verified', `halt ${halt_id}: ${what}`, {
    remedy: isAtVenue
      ? 'Cancel open orders at the exchange. Then repeat the halt: the remaining deployments may have ended by then.'
      : 'Repeat the halt. If it fails again, stop the servers that run these deployments, and look for database errors in their logs.',
  });
}

export function showReport(out: Output, report: HaltReport): void {
  const { bot_id, bot_slug, in_force, deployments, latched_ms, verified_ms } = report;
  const orders = deployments.flatMap((one) => one.orders);
  const who = bot_id === null ? 'All bots have' : `The bot ${bot_slug ?? bot_id} has`;
  if (in_force) out.line(`${who} been halted since ${report.requested_at}: ${report.reason}`);
  out.line(
    `${formatVerified(deployments, 'deployment')} and ${formatVerified(orders, 'order')} verified to have ended. ` +
      `New sessions were blocked after ${latched_ms} ms, and the state was read back after ${verified_ms} ms.`,
  );
  const faulty = deployments.filter(({ verified }) => !verified);
  if (faulty.length === 0) return;
  showItems(out, faulty, FAULT_COLUMNS);
}

/** `2 deployments`, `1 of 2 deployments`. */
function formatVerified(all: readonly { readonly verified: boolean }[], what: string): string {
  const count = all.filter(({ verified }) => verified).length;
  return count === all.length
    ? formatCountOf(count, what)
    : `${count} of ${formatCountOf(all.length, what)}`;
}
