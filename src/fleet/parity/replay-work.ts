/** Replays and comparisons of recorded sessions, as done in a thread. */
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
  takeAllSteps,
  type CodeLimits,
  type HostedRun,
  type PastParams,
} from '../../trading/sandbox/hosted-run.ts';
import type { BotEventsTable } from '../../storage/tables.ts';
import { firstDifferentEvent } from './differences.ts';
import {
  explainDifference,
  untilEnd,
  type ParityFindings,
  type ReportedItem,
} from './explain-difference.ts';
import { Recording, type Instrument, type RecordedRun } from './recording.ts';
import { rerun, type Rerun } from './rerun.ts';

/** A bot version with changed values of its spec. */
export interface Subject {
  readonly version: number;
  /** The spec as its author wrote it. */
  readonly document: unknown;
  /** Custom code and models. */
  readonly files: Bundle | undefined;
  readonly changes: SpecChanges;
  /** Opening account, if it differs from the cash of the spec. */
  readonly opening?: Opening | undefined;
}

/** A session as sent to the thread. */
export interface SessionWork {
  readonly run_id: string;
  readonly session: Subject;
  /** The event before the first event of the session. */
  readonly before: ChainHead;
  /** Longest time without progress that the strategy may take, ms. Forks do not use it. */
  readonly timeoutMs: number;
  /** Limits of custom code. */
  readonly customCode: CodeLimits | undefined;
  /** Backtest to compare the session with. */
  readonly parity?: ParityWork | undefined;
  readonly fork?: ForkWork | undefined;
  /** Present for a session that traded at an exchange. */
  readonly deployment_id?: string | undefined;
}

export interface ParityWork {
  readonly backtest: Subject;
  /** Null to use the recorded bars. */
  readonly catalogueDir: string | null;
}

export interface ForkWork {
  /** Id or slug of the bot, for the remedies of errors. */
  readonly bot_ref: string;
  /** Sequence number of an event; the fork leaves the session after the bars up to it. */
  readonly at_seq: number;
  /** The session with the parameters of the fork. */
  readonly changed: Subject;
}

/** Rows of the log, or after the last ones their last sequence number. */
export type LogPart = { readonly rows: readonly BotEventsTable[] } | { readonly end: number };

export interface RunReplay {
  readonly matches: boolean;
  readonly bars: number;
  readonly events: number;
  /** Hash of the replayed events, as `hashOfLines`; null if the log is faulty. */
  readonly events_hash: string | null;
  readonly first_difference: {
    /** Sequence number in the log of the bot; null for an event that was not recorded. */
    readonly seq: number | null;
    readonly recorded: ReportedItem | null;
    readonly replayed: ReportedItem | null;
  } | null;
  readonly fault: EventFault | null;
}

export interface RunParity extends ParityFindings {
  readonly fault: EventFault | null;
}

/** @param signal ends the process of a custom strategy. */
export async function replaySession(
  work: SessionWork,
  parts: AsyncIterable<LogPart>,
  signal: AbortSignal,
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

/** @param signal ends the process of a custom strategy. */
export async function compareSession(
  work: SessionWork,
  { backtest: subject, catalogueDir }: ParityWork,
  parts: AsyncIterable<LogPart>,
  signal: AbortSignal,
): Promise<RunParity> {
  const recorded = await read(work, parts);
  const { fault, engines } = recorded;
  if (fault !== undefined) return { bars: 0, events: 0, first_difference: null, fault };
  return withBot(work, subject, signal, async (run) => {
    let { instruments } = recorded;
    if (catalogueDir !== null) {
      ({ instruments } = (
        await prepare(run.bot, { catalogueDir, assertions: [], benchmark: false })
      ).job);
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

/** Whether a halt or stop canceled the last order, which a strategy cannot do with this reason. */
export function endsHalted(orders: RecordedRun['orders']): boolean {
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

export async function withBot<T>(
  { customCode }: SessionWork,
  { document, changes, files }: Subject,
  signal: AbortSignal,
  work: (run: HostedRun) => Promise<T>,
  past?: PastParams,
): Promise<T> {
  const hosted = readChangedSpec(document, changes, files);
  const run = await openHosted(hosted, customCode, signal, past);
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
  await takeAllSteps(run, instruments);
  const { signals } = run;
  const setup = { instruments, strategy, params, config: engineConfig(spec), signals, opening };
  return rerun(setup, options);
}

export function specOf({ document, changes, files }: Subject) {
  return readChangedSpec(document, changes, files).spec;
}

/** Compares given parameters only, because the code of the strategy decides the defaults. */
function paramsOf(subject: Subject): string {
  return canonicalize(specOf(subject).spec.strategy.params)!;
}

function countBars(instruments: readonly Instrument[]): number {
  return instruments.reduce((sum, { bars }) => sum + bars.length, 0);
}
