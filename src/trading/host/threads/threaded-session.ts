import { msSince, thisMoment, type Moment } from '../../../base/elapsed.ts';
import { codeOf } from '../../../bots/bundle.ts';
import { readChangedSpec } from '../../../bots/hosted.ts';
import type { Bot } from '../../../bots/load-bot.ts';
import { prepare } from '../../../bots/prepare.ts';
import { parseTimeframe } from '../../../market/timeframe.ts';
import { liveSessionFeed } from '../../live-session-feed.ts';
import { replaySessionFeed } from '../../replay-feed.ts';
import { restoreSession } from '../../restore-session.ts';
import { openHosted, type HostedRun } from '../../sandbox/hosted-run.ts';
import type { SessionFeed } from '../../feed.ts';
import type { SessionBatch, SessionInput } from '../../session-events.ts';
import { newLife } from '../../session-life.ts';
import type { TradingSession } from '../../trading-session.ts';
import { warmUpOfSession } from '../../warm-up-of-session.ts';
import { HostedSession } from '../hosted-session.ts';
import type { SessionWork, TaskBatch, WorkerCalls } from './session-work.ts';

/** A batch that may still be written together with others. */
export type UnnumberedBatch = Omit<TaskBatch, 'number'>;

/** Where the session gets its inputs, and where its durable writes go. */
export interface SessionPorts extends Pick<WorkerCalls, 'readSupervision' | 'load' | 'live'> {
  /** The recorded inputs, oldest first. */
  readonly inputs: AsyncIterable<SessionInput>;
  /** Resolves when the session may continue. Batches are written in order, and may be joined. */
  readonly record: (batch: UnnumberedBatch) => Promise<void>;
  /** Aborted when the session must end with its present result. */
  readonly stop: AbortSignal;
  /** Aborted when the session no longer belongs to this worker. */
  readonly gone: AbortSignal;
}

export interface EndedSession {
  readonly bot: Bot;
  readonly feed: SessionFeed;
  readonly session: TradingSession;
  /** Whether the session was stopped before its feed ended. */
  readonly isStopped: boolean;
}

/** A batch is due after this count of steps or events, or this time in ms. */
const MOST_STEPS = 256;
const MOST_EVENTS = 512;
const LONGEST_BATCH_MS = 250;
/** Supervision is at most this old when bars are taken, ms. */
const SUPERVISION_EVERY_MS = 1000;

/**
 * Runs a paper session until it ends, from its recorded inputs on.
 *
 * @returns undefined if it was stopped before its first bars.
 * @throws ServiceError the failure of the session, after it was recorded; the reason of `gone`.
 */
export async function runSession(
  work: SessionWork,
  ports: SessionPorts,
): Promise<EndedSession | undefined> {
  const { document, input, files, customCode } = work;
  const { from, to, params } = input;
  const spec = readChangedSpec(document, { from, to, params }, files);
  const run = await openHosted(spec, customCode, ports.gone);
  try {
    const feed = await openFeed(work, ports, run.bot);
    const session = await restore(work, ports, run);
    ports.gone.throwIfAborted();
    await new ThreadedSession(work, ports, run, feed).trade(session);
    ports.gone.throwIfAborted();
    if (session.failure !== undefined) throw session.failure;
    if (session.steps === 0) return undefined;
    const isStopped = ports.stop.aborted || session.status === 'halted';
    return { bot: run.bot, feed, session, isStopped };
  } finally {
    await run.close();
  }
}

/**
 * Hosts a session on paper in a thread. It needs no inbox as in `PodRunner`: nothing reports to it but
 * its feed, and it reads supervision before it takes bars. It writes in batches, because replayed bars
 * arrive faster than a database can commit them.
 */
class ThreadedSession {
  readonly #hosted: HostedSession;
  readonly #speed: SessionWork['input']['speed'];
  readonly #ports: SessionPorts;
  readonly #feed: SessionFeed;
  #batchBegun = { steps: 0, at: performance.now() };
  #supervisedAt: Moment | undefined;

  constructor(work: SessionWork, ports: SessionPorts, run: HostedRun, feed: SessionFeed) {
    this.#speed = work.input.speed;
    this.#ports = ports;
    this.#feed = feed;
    this.#hosted = new HostedSession(newLife(false, 0), {
      // The result of a paper session is that of a backtest of its bars.
      recordsHalts: false,
      failsWhenRuined: false,
      // The worker holds the claim, and paper sessions need no license.
      observe: () => ({ isLicensed: true, isClaimFresh: true }),
      prepareWarmUp: (part) => run.warmUp(part),
      prepareBars: async (step) => {
        this.#hosted.noteBeforeBars();
        await this.#updateSupervision();
        await run.take([step]);
        return false;
      },
      write: (batch) => this.#write(batch),
    });
  }

  async trade(session: TradingSession): Promise<void> {
    const hosted = this.#hosted;
    const { stop, gone } = this.#ports;
    const { time } = session.state();
    this.#batchBegun.steps = session.steps;
    hosted.dispatch({ kind: 'claimed' });
    hosted.adopt(session);
    if (hosted.life.ending !== undefined) return;
    hosted.dispatch({ kind: 'feed_connected' });
    const stopOrGone = AbortSignal.any([stop, gone]);
    try {
      const last = time === null ? undefined : Date.parse(time);
      for await (const item of this.#feed.items(last, stopOrGone)) {
        stopOrGone.throwIfAborted();
        await hosted.takeFeedItem(item);
        if (hosted.life.ending !== undefined) break;
        if (this.#isDue()) await hosted.write();
      }
      hosted.dispatch({ kind: 'feed_ended' });
    } catch (thrown) {
      if (!stop.aborted || gone.aborted) throw thrown;
    }
    if (stop.aborted) hosted.dispatch({ kind: 'stop_requested', isFinal: true });
    await hosted.write();
  }

  /** Reads supervision before each step, so that no order is placed by outdated supervision. */
  async #updateSupervision(): Promise<void> {
    const before = this.#supervisedAt;
    if (before !== undefined && msSince(before) < SUPERVISION_EVERY_MS) return;
    // Taken before the read: a late answer reflects this time.
    const asked = thisMoment();
    const supervision = await this.#ports.readSupervision();
    this.#supervisedAt = asked;
    this.#hosted.dispatch({ kind: 'answered', command: 'trade', halt: {}, supervision });
    this.#hosted.dispatch({ kind: 'ticked' });
  }

  #isDue(): boolean {
    const { steps, at } = this.#batchBegun;
    return (
      this.#speed !== 'max' ||
      this.#hosted.session!.steps - steps >= MOST_STEPS ||
      this.#hosted.eventCount >= MOST_EVENTS ||
      performance.now() - at >= LONGEST_BATCH_MS
    );
  }

  async #write(batch: Omit<SessionBatch, 'number'>): Promise<void> {
    const { events, state, steps } = batch;
    // A halt without working orders has no event, but must be recorded.
    if (events.length > 0 || state.status !== 'running') {
      await this.#ports.record({ ...batch, total: this.#feed.total });
    }
    this.#batchBegun = { steps, at: performance.now() };
  }
}

async function openFeed(
  { input: { live, speed }, catalogueDir }: SessionWork,
  ports: SessionPorts,
  bot: Bot,
): Promise<SessionFeed> {
  const { universe, data } = bot.spec.spec;
  const timeframe = parseTimeframe(data.timeframe);
  if (live === undefined) {
    const { job, notes } = await prepare(bot, {
      catalogueDir,
      assertions: [],
      benchmark: false,
      load: ports.load,
    });
    return replaySessionFeed(job, timeframe, notes, speed);
  }
  const { exchange } = live;
  const { symbols } = universe;
  const { notes, ...warmUp } = warmUpOfSession(bot, timeframe.ms);
  const source = { exchange, symbols, timeframe: timeframe.name, warmUp };
  return liveSessionFeed(() => ports.live(source), exchange, timeframe, notes);
}

function restore(
  { input: { opening }, recorded: { state }, files, timeoutMs }: SessionWork,
  ports: SessionPorts,
  run: HostedRun,
): Promise<TradingSession> {
  const inputs = async function* (): AsyncGenerator<SessionInput> {
    yield* ports.inputs;
    if (state.status === 'halted' || state.status === 'failed') yield { kind: 'control.halted' };
  };
  // Built-in strategies always return, while the orders of custom code can take hours to repeat.
  const terms = { timeoutMs: codeOf(files) === undefined ? Infinity : timeoutMs, opening };
  return restoreSession(run, terms, inputs(), state);
}
