import { msSince, type Moment } from '../../../base/elapsed.ts';
import type { SessionState } from '../../../events/session-state.ts';
import { formatMismatches } from '../../holdings-check.ts';
import type { HostedSession } from '../hosted-session.ts';
import type { RunnerState, ServerConnection } from './server-connection.ts';
import type { VenueConnection } from './venue-connection.ts';

/** Obstacles to trading, as sentences by topic; empty while the deployment trades. */
export type Missing = Readonly<Record<string, string>>;

/** Bars are overdue this long after the length of two bars, ms. */
const SILENCE_MS = 60_000;

export interface RunnerParts {
  readonly hosted: HostedSession;
  readonly isExchange: boolean;
  /** Undefined if no server supervises the deployment. */
  readonly server: ServerConnection | undefined;
  /** Undefined until it is open, and for a simulated venue. */
  readonly connection: VenueConnection | undefined;
  readonly working: SessionState['working'];
  readonly hasFeed: boolean;
  /** Time at which the newest bars arrived. */
  readonly barAt: Moment | undefined;
  /** Time of the newest bars of an exchange, or of the connection; undefined for other bars. */
  readonly barsSince: Moment | undefined;
  /** Length of a bar, ms. */
  readonly barMs: number;
}

/** The state of a runner, for its server. */
export function describeRunner({
  hosted,
  isExchange,
  connection,
  working,
}: RunnerParts): RunnerState {
  const { denying, foreignEpoch } = hosted.life;
  const database_epoch = Math.max(hosted.epoch, foreignEpoch);
  const checkedAt = connection?.checkedAt ?? null;
  return {
    status: statusOf(hosted),
    denying,
    // Servers without epochs reject unknown fields.
    ...(database_epoch > 1 && { database_epoch }),
    venue: {
      connected: isExchange ? connection?.gateway.isConnected === true : true,
      open_orders: isExchange ? (connection?.openOrders ?? null) : working.length,
      checked_at: checkedAt === null ? null : new Date(checkedAt).toISOString(),
    },
  };
}

function statusOf({ life: { ending, stage, denying } }: HostedSession): RunnerState['status'] {
  if (ending !== undefined) return ending.outcome === 'halted' ? 'halting' : 'stopping';
  if (stage === 'restoring' || stage === 'reconciling') return 'starting';
  return denying === null ? 'trading' : 'denying';
}

export function describeMissing(parts: RunnerParts): Missing {
  const { hosted, server, connection, hasFeed } = parts;
  const { ending, holdings, stage } = hosted.life;
  const { mismatches } = holdings;
  const { denial } = hosted;
  const silent = silentSeconds(parts);
  const isReconciled = stage === 'connecting' || stage === 'trading';
  return {
    ...(server && !server.hasClaim && { claim: 'the server has not granted it' }),
    ...(hosted.session === undefined && { session: 'it is not resumed yet' }),
    ...(!isReconciled && { venue: 'it is not reconciled yet' }),
    ...(mismatches.length > 0 && { venue: formatMismatches(mismatches) }),
    ...(!hasFeed && { feed: 'no bars come yet' }),
    ...(silent !== undefined && { feed: `no bars for ${silent} s` }),
    ...(connection?.gateway.isConnected === false && { venue: 'it does not answer' }),
    ...(denial !== null && { denying: denial }),
    ...(ending !== undefined && { ending: ending.outcome }),
  };
}

/** Seconds without bars of an exchange, if some are overdue. */
function silentSeconds({ barsSince, barMs }: RunnerParts): number | undefined {
  if (barsSince === undefined) return undefined;
  const ms = msSince(barsSince);
  return ms > 2 * barMs + SILENCE_MS ? Math.round(ms / 1000) : undefined;
}
