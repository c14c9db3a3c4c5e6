/** What the verbs that halt bots have in common. */
import { haltFailure, isHaltReason } from '../api/halt-failure.ts';
import type { Halt, HaltReport, listHalts } from '../api/halts.ts';
import type { Client } from '../client/client.ts';
import { ServiceError } from '../base/errors.ts';
import { formatActor, formatCountOf } from '../base/format.ts';
import type { Columns } from './show-items.ts';
import type { Output } from './output.ts';
import type { Answer } from './verb.ts';

export const REASON_OPTION = {
  value: 'text',
  description: 'why; it is kept with the halt and in the audit log',
  required: true,
} as const;

export const HALT_COLUMNS: Columns<Halt> = {
  halt: ({ halt_id }) => halt_id,
  of: ({ bot_id }) => bot_id ?? 'all bots',
  'in force': ({ lifted_at }) => (lifted_at === null ? 'yes' : 'no'),
  reason: ({ reason }) => reason,
  by: ({ requested_by, requested_by_name }) => formatActor(requested_by, requested_by_name),
  since: ({ requested_at }) => requested_at,
  lifted: ({ lifted_at }) => lifted_at ?? '',
  ended: ({ deployments }) => String(deployments),
};

/** The halt of all bots that is in force. Those in force come first: there is mostly one request. */
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

/** What is not as it should be. */
const FAULT_COLUMNS: Columns<Deployment> = {
  bot: ({ bot_id }) => bot_id,
  deployment: ({ deployment_id }) => deployment_id,
  status: ({ status }) => status,
  'not verified': ({ faults }) => faults.join(', '),
  orders: ({ orders }) =>
    orders
      .filter(({ verified }) => !verified)
      .map(({ order, symbol }) => `${order} (${symbol})`)
      .join(', '),
};

/** What came of a halt: a failure where not all of it is verified. */
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
    : 'it could not be read back that it is in force';
  const isAtVenue = deployments.some(({ target, verified: isSo }) => target === 'k8s' && !isSo);
  return new ServiceError('halt_not_verified', `the halt ${halt_id}: ${what}`, {
    remedy: isAtVenue
      ? 'Look at the exchange, and cancel there what is still open. Ask for the halt again: what has not ended yet may have by then.'
      : 'Ask for it again. If it stays so, stop the servers that work on it, and see their logs for what the database refuses.',
  });
}

export function showReport(out: Output, report: HaltReport): void {
  const { bot_id, in_force, deployments, latched_ms, verified_ms } = report;
  const orders = deployments.flatMap((one) => one.orders);
  const who = bot_id === null ? 'All bots are' : `The bot ${bot_id} is`;
  if (in_force) out.line(`${who} halted since ${report.requested_at}: ${report.reason}`);
  out.line(
    `${formatVerified(deployments, 'deployment')} and ${formatVerified(orders, 'order')} verified to have ended; ` +
      `nothing could start after ${latched_ms} ms, and all was read back after ${verified_ms} ms.`,
  );
  const faulty = deployments.filter(({ verified }) => !verified);
  if (faulty.length === 0) return;
  out.table(
    Object.keys(FAULT_COLUMNS).map((title) => ({ title })),
    faulty.map((one) => Object.values(FAULT_COLUMNS).map((cell) => cell(one))),
  );
}

/** `2 deployments`, `1 of 2 deployments`. */
function formatVerified(all: readonly { readonly verified: boolean }[], what: string): string {
  const count = all.filter(({ verified }) => verified).length;
  return count === all.length
    ? formatCountOf(count, what)
    : `${count} of ${formatCountOf(all.length, what)}`;
}
