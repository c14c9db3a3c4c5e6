import { msSince, thisMoment, type Moment } from '../../../base/elapsed.ts';
import { readChangedSpec } from '../../../bots/hosted.ts';
import type { Bot } from '../../../bots/load-bot.ts';
import { prepare } from '../../../bots/prepare.ts';
import { parseTimeframe } from '../../../market/timeframe.ts';
import type { FeedItem } from '../../feed.ts';
import { liveSessionFeed } from '../../live-session-feed.ts';
import { replaySessionFeed } from '../../replay-feed.ts';
import { restoreSession } from '../../restore-session.ts';
import { openHosted, type HostedRun } from '../../sandbox/hosted-run.ts';
import type { SessionFeed } from '../../session-feed.ts';
import type { SessionInput } from '../../session-input.ts';
import { newLife } from '../../session-life.ts';
import type { TradingSession } from '../../trading-session.ts';
import { HostedSession } from '../hosted-session.ts';
import type { SessionBatch, SessionWork, WorkerCalls } from './session-work.ts';

/** A batch that may still be written together with others. */
export type UnnumberedBatch = Omit<SessionBatch, 'number'>;

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
    const threaded = new ThreadedSession(work, ports, run, feed, session);
    await threaded.follow();
    ports.gone.throwIfAborted();
    if (session.failure !== undefined) throw session.failure;
    if (session.steps === 0) return undefined;
    const isStopped = ports.stop.aborted || session.status === 'halted';
    return { bot: run.bot, feed, session, isStopped };
  } finally {
    await run.close();
  }
}

/** Takes the bars of a feed, and writes what follows from them in batches. */
class ThreadedSession {
  readonly #hosted: HostedSession;
  readonly #session: TradingSession;
  readonly #work: SessionWork;
  readonly #ports: SessionPorts;
  readonly #run: HostedRun;
  readonly #feed: SessionFeed;
  #batchBegun: { readonly steps: number; readonly at: number };
  /** Time of the oldest event that is not written, ms since epoch. */
  #madeAt = Date.now();
  #supervisedAt: Moment | undefined;

  constructor(
    work: SessionWork,
    ports: SessionPorts,
    run: HostedRun,
    feed: SessionFeed,
    session: TradingSession,
  ) {
    this.#work = work;
    this.#ports = ports;
    this.#run = run;
    this.#feed = feed;
    this.#session = session;
    this.#batchBegun = { steps: session.steps, at: performance.now() };
    this.#hosted = new HostedSession(newLife(false, 0), {
      // Its state records the halt of a paper session.
      recordsHalts: false,
      // The worker holds the claim, and paper sessions need no license.
      observe: () => ({ isLicensed: true, isClaimFresh: true }),
    });
    this.#hosted.session = session;
  }

  async follow(): Promise<void> {
    const hosted = this.#hosted;
    const { stop, gone } = this.#ports;
    const { time } = this.#work.recorded.state;
    hosted.dispatch({ kind: 'claimed' });
    const error = this.#session.status === 'running' ? undefined : hosted.failure;
    hosted.dispatch({ kind: 'restored', denying: null, foreignEpoch: 0, error });
    if (hosted.life.ending !== undefined) return;
    const stopOrGone = AbortSignal.any([stop, gone]);
    try {
      const last = time === null ? undefined : Date.parse(time);
      hosted.dispatch({ kind: 'feed_connected' });
      for await (const item of this.#feed.items(last, stopOrGone)) {
        stopOrGone.throwIfAborted();
        await this.#take(item);
        if (hosted.life.ending !== undefined) break;
      }
      hosted.dispatch({ kind: 'feed_ended' });
    } catch (thrown) {
      if (!stop.aborted || gone.aborted) throw thrown;
    }
    this.#timeFirstEvent();
    if (stop.aborted) hosted.dispatch({ kind: 'stop_requested', isFinal: true });
    await this.#flush();
  }

  async #take(item: FeedItem): Promise<void> {
    const hosted = this.#hosted;
    this.#timeFirstEvent();
    if (item.kind !== 'data.bars') {
      hosted.noteData(item);
      if (item.kind === 'data.refused' && this.#isDue()) await this.#flush();
      return;
    }
    hosted.noteGaps();
    await this.#updateSupervision();
    const { take, needsSteps } = this.#run;
    if (needsSteps) await take([item.step]);
    if (hosted.takeBars(item.step, false)) {
      if (this.#isDue()) await this.#flush();
    } else if (this.#session.status === 'ruined') hosted.dispatch({ kind: 'feed_ended' });
    else hosted.dispatch({ kind: 'failed', error: hosted.failure });
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

  #timeFirstEvent(): void {
    if (this.#hosted.eventCount === 0) this.#madeAt = Date.now();
  }

  #isDue(): boolean {
    const { steps, at } = this.#batchBegun;
    return (
      this.#work.input.speed !== 'max' ||
      this.#session.steps - steps >= MOST_STEPS ||
      this.#hosted.eventCount >= MOST_EVENTS ||
      performance.now() - at >= LONGEST_BATCH_MS
    );
  }

  async #flush(): Promise<void> {
    const { steps } = this.#session;
    const events = this.#hosted.takeEvents();
    const state = this.#session.state();
    // A halt without working orders has no event, but must be recorded.
    if (events.length > 0 || state.status !== 'running') {
      const { total } = this.#feed;
      await this.#ports.record({ events, made_at: this.#madeAt, state, steps, total });
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
    const { job, notes } = await prepare(bot, { catalogueDir, assertions: [], load: ports.load });
    return replaySessionFeed(job, timeframe, notes, speed);
  }
  const { exchange } = live;
  const source = { exchange, symbols: universe.symbols, timeframe: timeframe.name };
  return liveSessionFeed(() => ports.live(source), exchange, timeframe);
}

function restore(
  { input: { opening }, recorded: { state }, timeoutMs }: SessionWork,
  ports: SessionPorts,
  run: HostedRun,
): Promise<TradingSession> {
  const inputs = async function* (): AsyncGenerator<SessionInput> {
    yield* ports.inputs;
    if (state.status === 'halted' || state.status === 'failed') yield { kind: 'control.halted' };
  };
  return restoreSession(run, { timeoutMs, opening }, inputs(), state);
}
