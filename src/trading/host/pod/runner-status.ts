import { msSince, type Moment } from '../../../base/elapsed.ts';
import type { SessionState } from '../../../events/session-state.ts';
import { formatMismatches } from '../../holdings-check.ts';
import type { HostedSession } from '../hosted-session.ts';
import type { SessionLife } from '../../session-life.ts';
import type { BackgroundWork } from './background-work.ts';
import { barMsOf } from './deployed-bot.ts';
import type { Times } from './runner-metrics.ts';
import type { RunnerState } from './server-connection.ts';
import type { Missing, RunnerView, TradeOptions } from './trade-options.ts';

/** Bars are overdue after the length of two bars plus this time, ms. */
const SILENCE_MS = 60_000;

/** State of a runner, for its server, health checks and metrics. */
export class RunnerStatus implements RunnerView {
  /** Time at which the newest bars arrived. */
  barAt: Moment | undefined;
  /** Time at which the feed was opened; undefined before it. */
  feedAt: Moment | undefined;
  readonly #options: TradeOptions;
  readonly #hosted: HostedSession;
  readonly #work: BackgroundWork;

  constructor(options: TradeOptions, hosted: HostedSession, work: BackgroundWork) {
    this.#options = options;
    this.#hosted = hosted;
    this.#work = work;
  }

  /** State for the reports to the server. */
  describe(): RunnerState {
    const { life, working, session } = this.#hosted;
    const { connection } = this.#work;
    // Until the session is restored, any server may grant the claim, which canceling orders needs.
    const database_epoch = Math.max(session?.supervised.epoch ?? 1, life.foreignEpoch);
    const checkedAt = connection?.checkedAt ?? null;
    return {
      status: statusOf(life),
      denying: life.denying,
      // Servers without epochs reject unknown fields.
      ...(database_epoch > 1 && { database_epoch }),
      venue: {
        connected: !life.isAtVenue || connection?.gateway.isConnected === true,
        open_orders: life.isAtVenue ? (connection?.openOrders ?? null) : working.length,
        checked_at: checkedAt === null ? null : new Date(checkedAt).toISOString(),
      },
    };
  }

  missing(): Missing {
    const { life, session, denial } = this.#hosted;
    const { server, connection } = this.#work;
    const { ending, holdings, stage } = life;
    const { mismatches } = holdings;
    const silent = this.#silentSeconds();
    const isReconciled = stage === 'connecting' || stage === 'trading';
    return {
      ...(server && !server.hasClaim && { claim: 'not granted by the server yet' }),
      ...(session === undefined && { session: 'not restored yet' }),
      ...(!isReconciled && { venue: 'not reconciled yet' }),
      ...(mismatches.length > 0 && { venue: formatMismatches(mismatches) }),
      ...(this.feedAt === undefined && { feed: 'no bars received yet' }),
      ...(silent !== undefined && { feed: `no bars for ${silent} s` }),
      ...(connection?.gateway.isConnected === false && { venue: 'does not answer' }),
      ...(denial !== null && { denying: denial }),
      ...(ending !== undefined && { ending: ending.outcome }),
    };
  }

  working(): SessionState['working'] {
    return this.#hosted.working;
  }

  times(): Times {
    const { server, connection } = this.#work;
    return { bar: this.barAt, report: server?.answeredAt, venue: connection?.gateway.answeredAt };
  }

  /** Seconds without bars of an exchange, if some are overdue. */
  #silentSeconds(): number | undefined {
    const { config, bot } = this.#options;
    if (config.exchange === undefined || this.feedAt === undefined) return undefined;
    const ms = msSince(this.barAt ?? this.feedAt);
    return ms > 2 * barMsOf(bot.bot) + SILENCE_MS ? Math.round(ms / 1000) : undefined;
  }
}

function statusOf({ ending, stage, denying }: SessionLife): RunnerState['status'] {
  if (ending !== undefined) return ending.outcome === 'halted' ? 'halting' : 'stopping';
  if (stage === 'restoring' || stage === 'reconciling') return 'starting';
  return denying === null ? 'trading' : 'denying';
}
