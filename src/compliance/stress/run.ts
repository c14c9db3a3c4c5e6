/** Runs the stress test: a multiple of the peaks of six months, on the session code of production. */
import { availableParallelism, tmpdir } from 'node:os';
import { digest } from '../evidence-digest.ts';
import type { TriedBot } from '../conformance/tried-session.ts';
import { BOUNDS } from './bounds.ts';
import { trySafeguards, type SafeguardResult } from './safeguards.ts';
import { writeToDisk, type OnDisk } from './disk.ts';
import { judge, type Judged } from './judge.ts';
import { lift, widen } from './lift.ts';
import type { Meters } from './stress-load.ts';
import { findHeadroom, type Headroom } from './headroom.ts';
import { runPass } from './pass.ts';
import type { PassResult } from './pass-result.ts';
import type { History } from './history.ts';
import type { Basis, Plan } from './stress-plan.ts';
import { rounded } from './samples.ts';
import { createLoad, findTarget } from './load-schedule.ts';

export interface StressResult extends Judged {
  readonly schema: 'stress/1';
  readonly environment: 'simulated_venue';
  readonly scope: 'bot' | 'firm';
  readonly coverage: {
    readonly covered: readonly string[];
    readonly not_covered: readonly string[];
  };
  readonly basis: Basis;
  readonly multiplier: number;
  readonly coverage_days: number;
  readonly gaps: History['gaps'];
  readonly peaks: Pick<History, 'window' | 'production' | 'counted' | 'query' | 'since' | 'days'>;
  readonly targets: Pick<Plan, 'messages' | 'volume'>;
  readonly assumption: Plan['assumption'];
  readonly passes: readonly PassResult[];
  readonly headroom: Headroom;
  /** The machine during the passes. */
  readonly host: {
    readonly processors: number;
    readonly real_ms: number;
    /** The part in which the host ran other work. */
    readonly withheld_ms: number;
  };
  readonly log_on_disk: OnDisk | null;
  readonly controls: readonly SafeguardResult[];
  /** Internal thresholds, except for `alertMs`, which Article 16(5) prescribes. */
  readonly house_numbers: typeof BOUNDS;
  readonly method: string;
  readonly seed: number;
  /** SHA-256 of the generated load and its results without times; null if a pass was cut short. */
  readonly evidence_hash: string | null;
}

export interface StressOptions {
  readonly seed: number;
  /** See `openMeters`. */
  readonly meters: Meters;
  /** Length of the hold in bars of one minute; 30 by default. */
  readonly holdBars?: number;
  /** Maximum number of messages until the end of the soak; 200,000 by default. A larger daily target is missed. */
  readonly mostMessages?: number;
  /** Maximum number of steps beyond the target, each 50 % more than the last; 8 by default. */
  readonly steps?: number;
  /** Real time after which a pass is cut short, ms; 300,000 by default. */
  readonly budgetMs?: number;
  /** Directory for a temporary log; the system's by default. */
  readonly directory?: string;
  /** Called with the number of completed steps and their total. */
  readonly onProgress?: (done: number, of: number) => void;
}

const HOLD_BARS = 30;
const MOST_MESSAGES = 200_000;
const STEPS = 8;
const BUDGET_MS = 300_000;
const PARTS = 5;
const STEPS_OF_PART = 100;
const METHOD =
  'The engine decides at bars: all messages that are due before the next bar are sent at once, so that a minute of the target arrives within one second. Time at the venue is virtual and waits for the machine. Durations are measured on the machine and include the simulated venue; messages that are not processed within a window do not count as achieved in it. The log of the passes is in memory; log_on_disk measures separately how a log on disk handles the same events. Time in which the host ran other work, measured as the time for which this thread waited for a processor, does not count against the bot: figures named net exclude it. If the host withheld more than a tenth of a period, net is the processor time of the thread; if the processor ran slower than at its best in this run, net is scaled to that best. A figure that is too high only because of the host makes the verdict inconclusive. The venue passes messages as objects, so decoding is not measured. The venue and the bot share one clock, so there is no offset. Production files and connections are not part of the run.';

/**
 * Tests a bot with its own load, or with the history of a firm, with the load of all bots in one session.
 * Replaces the clocks of its thread during the test (see `inVirtualTime`).
 */
export async function runStress(
  tried: TriedBot,
  history: History,
  plan: Plan,
  options: StressOptions,
): Promise<StressResult> {
  const { seed, meters, steps = STEPS, onProgress } = options;
  const reportProgress = (part: number, share = 0): void =>
    onProgress?.(Math.floor((part + share) * STEPS_OF_PART), PARTS * STEPS_OF_PART);
  const pass = (part: number) => ({
    seed,
    meters,
    holdBars: options.holdBars ?? HOLD_BARS,
    mostMessages: options.mostMessages ?? MOST_MESSAGES,
    budgetMs: options.budgetMs ?? BUDGET_MS,
    onBar: (done: number, of: number) => reportProgress(part, done / of),
  });
  const own = history.scope === 'firm' ? widen(tried, plan) : { tried, changes: [] };
  const free = lift(own, plan, 'lifted');
  const on = await runPass(own.tried, plan, { limits: 'on', lifted: own.changes }, pass(0));
  reportProgress(1);
  const lifted = await runPass(
    free.tried,
    plan,
    { limits: 'lifted', lifted: free.changes },
    pass(1),
  );
  reportProgress(2);
  const headroom = await findHeadroom(free.tried, plan, { seed, meters, steps });
  reportProgress(3);
  const symbols = own.tried.bot.spec.spec.universe.symbols;
  const controls = await trySafeguards(
    { own: own.tried, lifted: free.tried, latching: lift(own, plan, 'kept').tried },
    seed,
    createLoad(plan, symbols, findTarget(plan, 'out', 1)?.count ?? 0, 1),
    meters,
  );
  reportProgress(4);
  const { sample, state } = lifted;
  const log_on_disk =
    state === undefined
      ? null
      : await writeToDisk(options.directory ?? tmpdir(), sample, state, meters);
  reportProgress(PARTS);
  const passes = [on.result, lifted.result];
  const { window, production, counted, query, since, days } = history;
  return {
    schema: 'stress/1',
    environment: 'simulated_venue',
    scope: history.scope,
    coverage: describeCoverage(history.scope),
    basis: plan.basis,
    multiplier: plan.multiplier,
    coverage_days: history.coverage_days,
    gaps: history.gaps,
    peaks: { window, production, counted, query, since, days },
    targets: { messages: plan.messages, volume: plan.volume },
    assumption: plan.assumption,
    passes,
    headroom,
    host: sumHostTimes(passes),
    log_on_disk,
    controls,
    ...judge(plan, { passes, controls, log_on_disk }),
    house_numbers: BOUNDS,
    method: METHOD,
    seed,
    evidence_hash: hashEvidence(seed, passes, controls),
  };
}

function sumHostTimes(passes: readonly PassResult[]): StressResult['host'] {
  const sum = (of: 'real_ms' | 'withheld_ms'): number =>
    rounded(passes.reduce((all, { host }) => all + host[of], 0));
  return {
    processors: availableParallelism(),
    real_ms: sum('real_ms'),
    withheld_ms: sum('withheld_ms'),
  };
}

function hashEvidence(
  seed: number,
  passes: readonly PassResult[],
  controls: readonly SafeguardResult[],
): string | null {
  const hashes = passes.map(({ schedule_hash, evidence_hash }) => [schedule_hash, evidence_hash]);
  if (hashes.some(([, evidence]) => evidence === null)) return null;
  return digest({ seed, passes: hashes, controls: controls.map(({ id, holds }) => [id, holds]) });
}

function describeCoverage(scope: History['scope']): StressResult['coverage'] {
  const venue = 'gateways, networks and venues: the venue is a simulated one in the same thread';
  if (scope === 'bot') {
    return {
      covered: ['engine, risk checks, session, runner and reports of this bot, at its own peaks'],
      not_covered: [
        venue,
        'other bots and shared systems: Article 10 concerns the whole firm, see scope firm',
      ],
    };
  }
  return {
    covered: [
      'the highest peaks of all bots together',
      'engine, risk checks, session, runner and reports, with all of that load in one session',
    ],
    not_covered: [
      venue,
      'concurrent sessions of several bots, on one machine or on several',
      'the server and its database while all bots report at once',
      'limits that bots share: each session has only the limits of its own bot',
      'several currencies: all trades are in the currency of the tested bot',
    ],
  };
}
