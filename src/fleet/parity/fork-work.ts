/** Forks of recorded sessions, as computed in a thread. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { compareFork, type ForkComparison } from '../../backtest/compare/compare-fork.ts';
import { ServiceError } from '../../base/errors.ts';
import { engineConfig } from '../../bots/spec.ts';
import { earlierParts } from '../../engine/earlier-bars.ts';
import { stateHash } from '../../events/session-state.ts';
import type { EventFault } from '../../events/event.ts';
import { parseTimeframe } from '../../market/timeframe.ts';
import { takeAllSteps, type HostedRun } from '../../trading/sandbox/hosted-run.ts';
import { parseInput, type SessionInput } from '../../trading/session-events.ts';
import { TradingSession, type SessionVenue } from '../../trading/trading-session.ts';
import { BarVenue } from './bar-venue.ts';
import { firstDifferentEvent } from './differences.ts';
import type { ReportedItem } from './explain-difference.ts';
import { ForkPointFinder, isStepInput, recordedHash, type ForkPoint } from './fork-point.ts';
import { Recording, type RecordedRun } from './recording.ts';
import { endsHalted, specOf, withBot } from './replay-work.ts';
import type { ForkWork, LogPart, SessionWork } from './replay-work.ts';

export type ParamValue = number | string | boolean;

/** A session beside the same session with other parameters from a bar on. */
export interface RunFork extends ForkComparison {
  /** The bars after which the parameters change, RFC 3339, and the state of the session after them. */
  readonly at: {
    readonly time: string;
    readonly state_hash: string;
    /** The newest recorded state up to there, which the re-run reproduces; null if none was recorded. */
    readonly verified_seq: number | null;
  };
  readonly params: readonly ForkedParam[];
  /** Whether the session traded at an exchange, whose fills the fork simulates from its start. */
  readonly simulates_fills: boolean;
  /** Number of bar steps. */
  readonly steps: { readonly before: number; readonly after: number };
  /** Order events after the fork. */
  readonly events: { readonly session: number; readonly fork: number };
  readonly first_difference: {
    readonly session: ReportedItem | null;
    readonly fork: ReportedItem | null;
  } | null;
  /** Why the strategy failed with the other parameters; null if it did not. */
  readonly failure: string | null;
}

interface ForkedParam {
  readonly name: string;
  readonly session: ParamValue;
  readonly fork: ParamValue;
}

/**
 * @param signal ends the process of a custom strategy.
 * @throws ServiceError `conflict` for an event without bars up to it or after it, or for a session that
 * cannot be reproduced; `invalid_spec` for invalid parameters.
 */
export async function forkSession(
  work: SessionWork,
  { bot_ref, at_seq, changed }: ForkWork,
  parts: AsyncIterable<LogPart>,
  signal: AbortSignal,
): Promise<RunFork | { readonly fault: EventFault }> {
  const { session } = work;
  const { spec } = specOf(session);
  const recording = new Recording(work.run_id, spec.universe.symbols, work.before);
  const finder = new ForkPointFinder(work.run_id, at_seq);
  const inputs: SessionInput[] = [];
  let recorded: RecordedRun | undefined;
  for await (const part of parts) {
    if ('end' in part) {
      recorded = recording.finish(part.end);
      break;
    }
    recording.take(part.rows);
    finder.take(part.rows);
    for (const { run_id, kind, payload } of part.rows) {
      if (run_id === work.run_id && isStepInput(kind)) inputs.push(parseInput(kind, payload));
    }
  }
  if (recorded === undefined) throw new Error('the log has no end');
  if (recorded.fault !== undefined) return { fault: recorded.fault };
  const point = finder.find(`service-local bots events ${bot_ref} --run ${work.run_id}`);
  const past: Past = { recorded, inputs, point, venue: venueOf(work, inputs) };
  const own = await withBot(work, session, signal, (run) => playSession(run, past, work));
  if (firstDifferentEvent(recorded.orders, own.lines) !== undefined || !own.isVerified) {
    throw notReproduced(bot_ref, work.run_id);
  }
  const before = { params: specOf(session).spec.strategy.params, until: point.time };
  const playFork = (run: HostedRun) => playSession(run, { ...past, isFork: true }, work);
  const fork = await withBot(work, changed, signal, playFork, before);
  if (fork.stepsBefore < own.stepsBefore) throw failedInPast(fork.failure);
  if (fork.stateHash !== own.stateHash) throw notReproduced(bot_ref, work.run_id);
  return compare(own, fork, past, parseTimeframe(spec.data.timeframe).ms);
}

function compare(
  own: Played,
  fork: Played,
  { point: { time, state }, venue }: Past,
  barMs: number,
): RunFork {
  const lines = own.lines.map((line) => ({ seq: 0, line }));
  const difference = firstDifferentEvent(lines, fork.lines);
  return {
    ...compareFork([own.result, fork.result], { until: time, barMs }),
    at: {
      time: new Date(time).toISOString(),
      state_hash: own.stateHash,
      verified_seq: state?.seq ?? null,
    },
    params: Object.keys(own.params).map((name) => ({
      name,
      session: own.params[name]!,
      fork: fork.params[name]!,
    })),
    simulates_fills: venue !== undefined,
    steps: { before: own.stepsBefore, after: own.result.steps - own.stepsBefore },
    events: {
      session: own.lines.length - own.eventsBefore,
      fork: fork.lines.length - fork.eventsBefore,
    },
    first_difference: difference
      ? { session: difference.recorded ?? null, fork: difference.rerun ?? null }
      : null,
    failure: fork.failure ?? null,
  };
}

/** Inputs that both runs share. */
interface Past {
  readonly recorded: RecordedRun;
  /** The inputs after the warm-up, in recorded order. */
  readonly inputs: readonly SessionInput[];
  readonly point: ForkPoint;
  /** Undefined for a session without an exchange. */
  readonly venue: SessionVenue | undefined;
  /** Whether fills are simulated from the fork on. */
  readonly isFork?: boolean;
}

/** @throws ServiceError `conflict` if the session did not record the rules with which it began */
function venueOf(
  { run_id, deployment_id }: SessionWork,
  inputs: readonly SessionInput[],
): SessionVenue | undefined {
  if (deployment_id === undefined) return undefined;
  for (const input of inputs) {
    if (input.kind === 'venue.terms') return { deployment_id, rules: input.rules };
    if (input.kind === 'data.bars') break;
  }
  const message = `run ${run_id} did not record the rules of its exchange at its start`;
  throw new ServiceError('conflict', message, {
    reason: 'no_venue_rules',
    remedy: 'Fork a session that a newer version of the runner began, or a paper session.',
  });
}

interface Played {
  readonly params: Readonly<Record<string, ParamValue>>;
  /** Order events, as lines of `events.ndjson`. */
  readonly lines: readonly string[];
  /** Number of events and steps up to the fork, and the hash of the state there. */
  readonly eventsBefore: number;
  readonly stepsBefore: number;
  readonly stateHash: string;
  /** False if a recorded state is not reached again. */
  readonly isVerified: boolean;
  readonly result: ReturnType<TradingSession['result']>['result'];
  readonly failure: string | undefined;
}

/** Steps between two chances for the thread to receive a request to stop. */
const STEPS_AT_ONCE = 256;

/** Runs a session over its recorded inputs, and verifies its state up to the fork. */
async function playSession(
  run: HostedRun,
  { recorded, inputs, point, venue, isFork = false }: Past,
  { session: { opening } }: Pick<SessionWork, 'session'>,
): Promise<Played> {
  const { strategy, params, spec } = run.bot;
  await takeAllSteps(run, recorded.instruments);
  const { symbols } = spec.spec.universe;
  const config = engineConfig(spec);
  const { signals } = run;
  const session = new TradingSession({
    symbols,
    strategy,
    params,
    config,
    opening,
    signals,
    venue,
    // A watchdog around each step would take longer than the step. `replay-thread.ts` ends this thread
    // after its time limit, and custom code runs in a process with its own limit.
    timeoutMs: Infinity,
  });
  const fills = venue && new BarVenue(config);
  let taken = 0;
  let atFork: Pick<Played, 'eventsBefore' | 'stepsBefore' | 'stateHash'> | undefined;
  let isVerified = true;
  for (const part of earlierParts(recorded.instruments)) {
    session.take({ kind: 'data.warm_up', ...part });
  }
  for (const input of inputs) {
    if (taken === point.inputs) atFork = momentOf(session);
    const isSimulated = isFork && atFork !== undefined;
    if (session.status === 'running' || input.kind !== 'data.bars') {
      takeInput(session, input, { fills, isSimulated });
    }
    taken += 1;
    if (taken === point.state?.inputs) {
      isVerified = stateHash(session.state()) === recordedHash(point.state);
    }
    if (taken % STEPS_AT_ONCE === 0) await nextTurn();
  }
  // A session without an exchange does the same when its strategy fails.
  const isHalted = endsHalted(recorded.orders) || session.failure !== undefined;
  if (venue === undefined && isHalted) session.halt();
  return {
    params,
    lines: session.events().map((event) => JSON.stringify(event)),
    ...(atFork ?? momentOf(session)),
    isVerified,
    result: session.result().result,
    failure: session.failure?.message,
  };
}

/**
 * @param fills of a session at an exchange
 * @param isSimulated whether they replace the fills of the exchange
 */
function takeInput(
  session: TradingSession,
  input: SessionInput,
  { fills, isSimulated }: { readonly fills: BarVenue | undefined; readonly isSimulated: boolean },
): void {
  if (fills === undefined) return void session.take(input);
  if (isSimulated && input.kind === 'venue.report') return;
  if (isSimulated && input.kind === 'data.bars') {
    for (;;) {
      const reports = fills.advance(session.outbox(), input.step);
      if (reports.length === 0) break;
      for (const report of reports) session.report(report);
    }
  }
  session.take(input);
  fills.place(session.outbox());
  if (input.kind === 'venue.report') fills.record(input.report);
}

function momentOf(session: TradingSession) {
  const state = session.state();
  return { eventsBefore: state.seq, stepsBefore: session.steps, stateHash: stateHash(state) };
}

function notReproduced(bot_ref: string, run_id: string): ServiceError {
  return new ServiceError('conflict', 'the past of the session cannot be reproduced', {
    reason: 'not_reproducible',
    remedy: `Run \`service-local bots replay ${bot_ref} --run ${run_id}\`, which names the first difference.`,
  });
}

function failedInPast(failure: string | undefined): ServiceError {
  const message = `the strategy fails with these parameters before the fork: ${failure}`;
  return new ServiceError('conflict', message, {
    reason: 'strategy_failed',
    remedy: 'Choose other parameters.',
  });
}
