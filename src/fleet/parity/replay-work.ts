/** What is done in a thread: a recorded session made again, by its own bars or by those there are. */
import type { ChainHead } from '../../base/hash-chain.ts';
import canonicalize from 'canonicalize';
import type { Opening } from '../../trading/opening.ts';
import type { Bundle } from '../../bots/bundle.ts';
import { readChangedSpec, type SpecChanges } from '../../bots/hosted.ts';
import { prepare } from '../../bots/prepare.ts';
import { engineConfig } from '../../bots/spec.ts';
import { ENGINE_VERSION } from '../../engine/version.ts';
import type { EventFault } from '../../events/event.ts';
import type { OrderEvent } from '../../engine/journal.ts';
import {
  openHosted,
  takeAll,
  type CodeLimits,
  type HostedRun,
} from '../../trading/sandbox/hosted.ts';
import type { BotEventsTable } from '../../storage/tables.ts';
import { firstDifferentEvent } from './differences.ts';
import {
  explainDifference,
  untilEnd,
  type ParityFindings,
  type Told,
} from './explain-difference.ts';
import { Recording, type Instrument, type RecordedRun } from './recording.ts';
import { rerun, type Rerun } from './rerun.ts';

/** A version of a bot, and what stands in place of the spec's own values. */
export interface Subject {
  readonly version: number;
  /** As it was authored. */
  readonly document: unknown;
  /** Of a strategy that came with it. */
  readonly files: Bundle | undefined;
  readonly changes: SpecChanges;
  /** The account with which it began, if it differs from the cash of the spec. */
  readonly opening?: Opening | undefined;
}

/** A session as one thread tells another of it. */
export interface SessionWork {
  readonly run_id: string;
  readonly session: Subject;
  /** The event before the first of the session. */
  readonly before: ChainHead;
  /** Longest time the strategy may keep the run from going on, ms. */
  readonly timeoutMs: number;
  /** What a strategy may take that came with the bot. */
  readonly customCode: CodeLimits | undefined;
  /** Where there is a backtest to compare it with. */
  readonly parity?: ParityWork | undefined;
}

export interface ParityWork {
  readonly backtest: Subject;
  /** Null where there are no bars but the recorded ones. */
  readonly catalogueDir: string | null;
}

/** Rows of the log, until the last, and then the seq to which they go. */
export type LogPart = { readonly rows: readonly BotEventsTable[] } | { readonly end: number };

export interface RunReplay {
  readonly matches: boolean;
  /** Of all instruments. */
  readonly bars: number;
  /** Recorded ones. */
  readonly events: number;
  /** See `hashOfLines`; of the events of the rerun, null where the log is not as it was written. */
  readonly events_hash: string | null;
  readonly first_difference: {
    /** In the log of the bot; null for an event that was not recorded. */
    readonly seq: number | null;
    readonly recorded: Told | null;
    readonly replayed: Told | null;
  } | null;
  readonly fault: EventFault | null;
}

export interface RunParity extends ParityFindings {
  readonly fault: EventFault | null;
}

/** What has to do with the thread in which it is. */
export interface Surroundings {
  /** Between these two it must not be ended. */
  readonly onLoading: () => void;
  readonly onLoaded: () => void;
  /** Ends the process of a strategy that came with the bot. */
  readonly signal: AbortSignal;
}

export async function replaySession(
  work: SessionWork,
  parts: AsyncIterable<LogPart>,
  { signal }: Surroundings,
): Promise<RunReplay> {
  const recorded = await read(work, parts);
  const { instruments, orders, supervision, fault } = recorded;
  const counts = { bars: countBars(instruments), events: orders.length };
  if (fault !== undefined) {
    return { matches: false, ...counts, events_hash: null, first_difference: null, fault };
  }
  const replayed = await withBot(work, work.session, signal, (run) =>
    again(run, instruments, {
      ...work,
      opening: work.session.opening,
      isHalted: endsHalted(orders),
      supervision,
    }),
  );
  const difference = firstDifferentEvent(orders, replayed.lines);
  return {
    matches: difference === undefined,
    ...counts,
    events_hash: replayed.events_hash,
    first_difference: difference
      ? {
          seq: difference.seq ?? null,
          recorded: difference.recorded ?? null,
          replayed: difference.rerun ?? null,
        }
      : null,
    fault: null,
  };
}

export async function compareSession(
  work: SessionWork,
  { backtest: subject, catalogueDir }: ParityWork,
  parts: AsyncIterable<LogPart>,
  { onLoading, onLoaded, signal }: Surroundings,
): Promise<RunParity> {
  const recorded = await read(work, parts);
  const { fault, engines } = recorded;
  if (fault !== undefined) return { bars: 0, events: 0, first_difference: null, fault };
  return withBot(work, subject, signal, async (run) => {
    let { instruments } = recorded;
    if (catalogueDir !== null) {
      onLoading();
      const prepared = await prepare(run.bot, { catalogueDir, assertions: [] }).finally(onLoaded);
      ({ instruments } = prepared.job);
    }
    const backtest = await again(run, untilEnd(recorded, instruments), {
      ...work,
      supervision: recorded.supervision,
    });
    const { session } = work;
    const others = [
      ...(subject.version === session.version ? [] : ['version' as const]),
      ...(paramsOf(subject) === paramsOf(session) ? [] : ['params' as const]),
      ...([...engines].every((engine) => engine === ENGINE_VERSION) ? [] : ['engine' as const]),
    ];
    return { ...explainDifference({ recorded, instruments, backtest, others }), fault: null };
  });
}

/** Whoever halts or stops a session cancels its orders; the strategy cannot do that. */
function endsHalted(orders: RecordedRun['orders']): boolean {
  const last = orders.at(-1);
  if (last === undefined) return false;
  const event = JSON.parse(last.line) as OrderEvent;
  return event.kind === 'order.canceled' && event.reason === 'halted';
}

async function read(
  { run_id, session, before }: SessionWork,
  parts: AsyncIterable<LogPart>,
): Promise<RecordedRun> {
  const recording = new Recording(run_id, specOf(session).spec.universe.symbols, before);
  for await (const part of parts) {
    if ('end' in part) return recording.finish(part.end);
    recording.take(part.rows);
  }
  throw new Error('the log has no end');
}

async function withBot<T>(
  { customCode }: SessionWork,
  { document, changes, files }: Subject,
  signal: AbortSignal,
  work: (run: HostedRun) => Promise<T>,
): Promise<T> {
  const run = await openHosted(readChangedSpec(document, changes, files), customCode, signal);
  try {
    return await work(run);
  } finally {
    await run.close();
  }
}

async function again(
  run: HostedRun,
  instruments: readonly Instrument[],
  { opening, ...options }: Parameters<typeof rerun>[1] & Pick<Subject, 'opening'>,
): Promise<Rerun> {
  const { strategy, params, spec } = run.bot;
  await takeAll(run, instruments);
  const { signals } = run;
  const setup = { instruments, strategy, params, config: engineConfig(spec), signals, opening };
  return rerun(setup, options);
}

function specOf({ document, changes, files }: Subject) {
  return readChangedSpec(document, changes, files).spec;
}

/** As they are given: those that are not have the strategy's own values, which its code decides. */
function paramsOf(subject: Subject): string {
  return canonicalize(specOf(subject).spec.strategy.params)!;
}

function countBars(instruments: readonly Instrument[]): number {
  return instruments.reduce((sum, { bars }) => sum + bars.length, 0);
}
