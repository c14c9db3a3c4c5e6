/**
 * A paper session from its bars to its result, in whatever thread it is. It knows neither the
 * database nor who runs it: what it does is handed to its ports in batches, and what was recorded of
 * it before comes back from there.
 *
 * Two things can be put in place of others, in `open`:
 * - the `SessionFeed`, where its bars come from;
 * - the `Trader`, who acts on them. A `Session` does so in this thread; one for code that must not be
 *   here is at work in a process of its own, and all of its answers may be promises. It takes the
 *   same steps in the same order, and is made anew, from the recorded steps, whenever this is.
 */
import type { MessagePort } from 'node:worker_threads';
import { outcomeOf } from '../../backtest/backtest.ts';
import { gatesOfSpec } from '../../backtest/gates.ts';
import type { BacktestJob } from '../../backtest/job.ts';
import type { Summary } from '../../backtest/summary.ts';
import type { Bundle } from '../../bots/bundle.ts';
import { readChangedSpec } from '../../bots/hosted.ts';
import type { Bot } from '../../bots/load-bot.ts';
import { modelsLock, prepare } from '../../bots/prepare.ts';
import { engineConfig } from '../../bots/spec.ts';
import { lockOf } from '../../bots/spec-lock.ts';
import type { Step } from '../../engine/steps.ts';
import { ENGINE_VERSION } from '../../engine/version.ts';
import { msSince, thisMoment, type Moment } from '../../base/elapsed.ts';
import { ServiceError } from '../../base/errors.ts';
import { barsDigest } from '../../market/digest.ts';
import type { loadDataset } from '../../market/load-dataset.ts';
import { parseTimeframe } from '../../market/timeframe.ts';
import { openHosted, type CodeLimits, type HostedRun } from '../../trading/sandbox/hosted-run.ts';
import { liveSessionFeed } from '../../trading/live-session-feed.ts';
import type { LiveSource } from '../../trading/live-worker.ts';
import {
  decideSupervision,
  type SupervisionInput,
  type SessionSupervision,
  type SupervisedState,
} from '../../trading/session-supervision.ts';
import type { SessionFeed } from '../../trading/session-feed.ts';
import type { SessionInput } from '../../trading/session-input.ts';
import { type Progress, type SessionState } from '../../events/session-state.ts';
import { restoreSession } from '../../trading/restore-session.ts';
import type { SessionResult } from '../../trading/trading-session.ts';
import { fileRun } from './backtest-work.ts';
import type { PaperInput } from './paper.ts';
import type { Batch } from './session-record.ts';
import { replaySessionFeed } from '../../trading/replay-feed.ts';
import {
  barsEvent,
  inputEvent,
  dataEvent,
  progressEvents,
  type SessionEvent,
} from '../../trading/session-events.ts';

/** A paper session as one thread tells another of it. */
export interface PaperWork {
  readonly runId: string;
  /** As it was authored. */
  readonly document: unknown;
  /** Of a strategy that came with it, and what that may take. */
  readonly files?: Bundle | undefined;
  readonly customCode?: CodeLimits | undefined;
  readonly input: PaperInput;
  /** What was recorded of it. */
  readonly recorded: Pick<Batch, 'steps' | 'state'> & { readonly batches: number };
  readonly catalogueDir: string;
  readonly timeoutMs: number;
  /** For its files. */
  readonly directory: string;
}

/** A batch that may still be written together with others. */
export type Unnumbered = Omit<Batch, 'number'>;

/** What a session works with. */
export interface SessionPorts {
  /** What it was told, as it was recorded, oldest first. */
  readonly steps: AsyncIterable<SessionInput>;
  /** What people have settled by now. */
  readonly readSupervision: () => Promise<SessionSupervision>;
  readonly load: typeof loadDataset;
  /** See `LiveMarkets`. */
  readonly live: (source: LiveSource) => Promise<MessagePort>;
  /** Resolves when it may go on; what waits is written in its order, and as one where it can be. */
  readonly record: (batch: Unnumbered) => Promise<void>;
  /** Aborted when the session is to end with what it has come to. */
  readonly stop: AbortSignal;
  /** Aborted when nobody wants to updateSupervision of it any more. */
  readonly gone: AbortSignal;
}

export interface PaperDone {
  readonly summary: Summary;
  /** See `Prepared`. */
  readonly notes: readonly string[];
  /** The names of its files. */
  readonly files: readonly string[];
  /** Whether it was stopped before its feed ended. */
  readonly stopped: boolean;
}

/** Who trades: see above. Of `Session`. */
export interface Trader {
  readonly failure: ServiceError | undefined;
  state(): SessionState | Promise<SessionState>;
  push(step: Step): Progress | Promise<Progress>;
  readonly supervised: SupervisedState;
  supervise(input: SupervisionInput): Progress | Promise<Progress>;
  halt(): Progress | Promise<Progress>;
  result(): SessionResult | Promise<SessionResult>;
}

/** Steps, and events, that make a batch where the feed brings more at once; ms after which one is due. */
const MOST_STEPS = 256;
const MOST_EVENTS = 512;
const LONGEST_BATCH_MS = 250;
/** People are heard so often at least, where bars come that often, ms. */
const SUPERVISION_EVERY_MS = 1000;

/**
 * @returns what came of it, once each of its files is in the directory, as `<name>.gz`; undefined
 *   when it was stopped before its first bars.
 * @throws ServiceError why it failed, whose batch has been handed over; and whatever `gone` was
 *   aborted with.
 */
export async function runSession(
  work: PaperWork,
  ports: SessionPorts,
): Promise<PaperDone | undefined> {
  const { document, input, files, customCode } = work;
  const { from, to, params } = input;
  const changes = { from, to, params };
  const run = await openHosted(readChangedSpec(document, changes, files), customCode, ports.gone);
  try {
    return await runHosted(work, ports, run);
  } finally {
    await run.close();
  }
}

async function runHosted(
  work: PaperWork,
  ports: SessionPorts,
  run: HostedRun,
): Promise<PaperDone | undefined> {
  const { recorded, input } = work;
  const { stop, gone } = ports;
  const { bot, feed, trader } = await open(work, ports, run);
  gone.throwIfAborted();
  let { steps } = recorded;
  let state = await trader.state();
  let events: SessionEvent[] = [];
  let begun = { steps, at: performance.now() };
  /** When the first of the events was. */
  let made_at = Date.now();
  const flush = async (): Promise<void> => {
    // A halt without working orders has no event, and is to be known all the same.
    if (events.length > 0 || state.status !== 'running') {
      const batch = { events, made_at, state, steps, total: feed.total };
      events = [];
      await ports.record(batch);
    }
    begun = { steps, at: performance.now() };
  };
  const isDue = (): boolean =>
    input.speed !== 'max' ||
    steps - begun.steps >= MOST_STEPS ||
    events.length >= MOST_EVENTS ||
    performance.now() - begun.at >= LONGEST_BATCH_MS;
  const take = (progress: Progress): void => {
    for (const event of progressEvents(progress)) events.push(event);
    ({ state } = progress);
  };
  let supervisedAt: Moment | undefined;
  /** Before each step, so that no order is placed by what was settled long before. */
  const updateSupervision = async (): Promise<void> => {
    if (supervisedAt !== undefined && msSince(supervisedAt) < SUPERVISION_EVERY_MS) return;
    // Taken before the read: a late answer reflects this time.
    const asked = thisMoment();
    const supervision = await ports.readSupervision();
    supervisedAt = asked;
    const now = Date.now();
    for (const input of decideSupervision(trader.supervised, supervision, now)) {
      events.push(inputEvent(input, now));
      take(await trader.supervise(input));
    }
  };

  if (recorded.state.status === 'running') {
    const last = recorded.state.time === null ? undefined : Date.parse(recorded.state.time);
    const stopOrGone = AbortSignal.any([stop, gone]);
    try {
      for await (const item of feed.items(last, stopOrGone)) {
        stopOrGone.throwIfAborted();
        if (events.length === 0) made_at = Date.now();
        if (item.kind === 'data.bars') {
          await updateSupervision();
          events.push(barsEvent(item.step));
          steps += 1;
          take(await trader.push(item.step));
          if (state.status !== 'running') break;
          if (isDue()) await flush();
        } else {
          events.push(dataEvent(item));
          // Of a gap its bars come next, and belong with it.
          if (item.kind === 'data.refused' && isDue()) await flush();
        }
      }
    } catch (error) {
      if (!stop.aborted || gone.aborted) throw error;
    }
    // Without the bars after it, a gap would be told again when the session goes on.
    while (events.at(-1)?.kind === 'data.gap') events.pop();
    if (events.length === 0) made_at = Date.now();
    if (stop.aborted || state.status === 'failed') take(await trader.halt());
    await flush();
  }
  gone.throwIfAborted();
  if (trader.failure !== undefined) throw trader.failure;
  if (steps === 0) return undefined;
  const stopped = stop.aborted || state.status === 'halted';
  const made = await resultOf(work, bot, feed, await trader.result());
  return { ...made, notes: feed.notes, stopped };
}

async function open(
  work: PaperWork,
  ports: SessionPorts,
  { bot, take, signals, needsSteps }: HostedRun,
): Promise<{ readonly bot: Bot; readonly feed: SessionFeed; readonly trader: Trader }> {
  const { input, catalogueDir, timeoutMs, recorded } = work;
  const { speed, live, opening } = input;
  const { universe, data } = bot.spec.spec;
  const timeframe = parseTimeframe(data.timeframe);
  const replay = async (): Promise<SessionFeed> => {
    const { job, notes } = await prepare(bot, { catalogueDir, assertions: [], load: ports.load });
    return replaySessionFeed(job, timeframe, notes, speed);
  };
  const follow = ({ exchange }: NonNullable<PaperInput['live']>): SessionFeed => {
    const source = { exchange, symbols: universe.symbols, timeframe: timeframe.name };
    return liveSessionFeed(() => ports.live(source), exchange, timeframe);
  };
  const feed = live === undefined ? await replay() : follow(live);
  const { strategy, params } = bot;
  const config = engineConfig(bot.spec);
  const { symbols } = universe;
  const setup = { symbols, strategy, params, config, timeoutMs, signals, opening };
  const inputs = async function* (): AsyncGenerator<SessionInput> {
    yield* ports.steps;
    // The state of a paper session records its halt.
    if (recorded.state.status === 'halted' || recorded.state.status === 'failed') {
      yield { kind: 'control.halted' };
    }
  };
  const session = await restoreSession(setup, inputs(), take, recorded.state);
  if (!needsSteps) return { bot, feed, trader: session };
  const push = async (step: Step): Promise<Progress> => {
    await take([step]);
    return session.push(step);
  };
  const trader: Trader = {
    get failure() {
      return session.failure;
    },
    get supervised() {
      return session.supervised;
    },
    state: () => session.state(),
    push,
    supervise: (one) => session.supervise(one),
    halt: () => session.halt(),
    result: () => session.result(),
  };
  return { bot, feed, trader };
}

/** The same as a backtest of the bars that it took. */
async function resultOf(
  { runId, directory }: PaperWork,
  bot: Bot,
  feed: SessionFeed,
  { result, bars, workMs }: SessionResult,
): Promise<Pick<PaperDone, 'summary' | 'files'>> {
  const { metadata, spec } = bot.spec;
  const { symbols, currency } = spec.universe;
  const config = engineConfig(bot.spec);
  const instruments = symbols.map((symbol, at) => ({
    symbol,
    bars: bars[at]!,
    source: feed.source(symbol, bars[at]!),
  }));
  const job: BacktestJob = {
    bot: { name: metadata.name, slug: metadata.slug },
    currency,
    lock: lockOf({
      spec: bot.hash,
      engine: ENGINE_VERSION,
      seed: config.seed,
      strategy: bot.strategyFiles ?? bot.strategy.name,
      data: Object.fromEntries(instruments.map((one) => [one.symbol, barsDigest(one.bars)])),
      models: modelsLock(bot.models),
    }),
    strategy: bot.strategy,
    params: bot.params,
    config,
    barMs: feed.barMs,
    instruments,
    assertions: gatesOfSpec(spec.metrics),
  };
  return fileRun(directory, job, outcomeOf(job, result, { runId, wallMs: workMs }));
}
