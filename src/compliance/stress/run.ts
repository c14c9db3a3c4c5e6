/** The stress run: twice the busiest of six months, with the session code that production has. */
import { availableParallelism, tmpdir } from 'node:os';
import { digest } from '../report/fields.ts';
import type { TriedBot } from '../conformance/world.ts';
import { BOUNDS, trySafeguards, type SafeguardResult } from './safeguards.ts';
import { writeToDisk, type OnDisk } from './disk.ts';
import { judge, type Judged } from './judge.ts';
import { lift, widen } from './lift.ts';
import type { Meters } from './load.ts';
import { findHeadroom, runPass, type Headroom, type PassResult } from './pass.ts';
import type { History } from './peaks.ts';
import type { Basis, Plan } from './plan.ts';
import { rounded } from './samples.ts';
import { loadOf, targetOf } from './schedule.ts';

export interface StressResult extends Judged {
  readonly schema: 'stress/1';
  readonly environment: 'simulated_venue';
  readonly scope: 'bot' | 'firm';
  /** What of the scope was in the test, and what was not. */
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
  /** Law are the multiplier, the six months and the five seconds; all other numbers are ours. */
  readonly house_numbers: typeof BOUNDS;
  readonly method: string;
  readonly seed: number;
  /** SHA-256 of what was generated, and what came of it; null where it was cut short. No times are in it. */
  readonly evidence_hash: string | null;
}

export interface StressOptions {
  readonly seed: number;
  /** See `openMeters`. */
  readonly meters: Meters;
  /** Bars of the hold; 30 by default, which is half an hour. */
  readonly holdBars?: number;
  /** So many messages are offered by the end of the soak; the target of a day beyond it is not reached. */
  readonly mostMessages?: number;
  /** Steps beyond the target, each half as much again; 8 by default. */
  readonly steps?: number;
  /** A pass offers nothing new after so long, ms of the machine; what is left is not reached. */
  readonly budgetMs?: number;
  /** For a log that is gone afterwards; that of the system by default. */
  readonly directory?: string;
  /** Told how far it is: in steps, of how many. */
  readonly onProgress?: (done: number, of: number) => void;
}

const HOLD_BARS = 30;
const MOST_MESSAGES = 200_000;
const STEPS = 8;
const BUDGET_MS = 300_000;
const PARTS = 5;
/** In which progress is counted. */
const STEPS_OF_PART = 100;
const METHOD =
  'The engine decides at bars: all messages that are due before the next bar are sent at once, so that a minute of the target arrives within one second. Time at the venue is virtual and waits for the machine. Durations are measured on the machine and include the simulated venue; messages that are not processed within a window do not count as achieved in it. The log of the passes is in memory; log_on_disk measures separately how a log on disk handles the same events. Time in which the host ran other work, measured as the time this thread waited for a processor, does not count against the bot: figures named net exclude it. If the host withheld more than a tenth of a period, net is the processor time of the thread; if the processor ran slower than at its best in this run, net is scaled to that best. A figure that is too high only because of the host makes the verdict inconclusive. The venue passes messages as objects, so decoding is not measured. The venue and the bot share one clock, so there is no offset. Production files and connections are not part of the run.';

/**
 * Tries a bot, or with the history of a firm the load of all bots through the session code of one. It
 * takes over the clocks of its thread (see `inVirtualTime`), and touches nothing but what it is handed.
 */
export async function runStress(
  tried: TriedBot,
  history: History,
  plan: Plan,
  options: StressOptions,
): Promise<StressResult> {
  const { seed, meters, steps = STEPS, onProgress } = options;
  const tell = (part: number, share = 0): void =>
    onProgress?.(Math.floor((part + share) * STEPS_OF_PART), PARTS * STEPS_OF_PART);
  const pass = (part: number) => ({
    seed,
    meters,
    holdBars: options.holdBars ?? HOLD_BARS,
    mostMessages: options.mostMessages ?? MOST_MESSAGES,
    budgetMs: options.budgetMs ?? BUDGET_MS,
    onBar: (done: number, of: number) => tell(part, done / of),
  });
  const own = history.scope === 'firm' ? widen(tried, plan) : { tried, changes: [] };
  const free = lift(own, plan, 'lifted');
  const on = await runPass(own.tried, plan, { limits: 'on', lifted: own.changes }, pass(0));
  tell(1);
  const lifted = await runPass(
    free.tried,
    plan,
    { limits: 'lifted', lifted: free.changes },
    pass(1),
  );
  tell(2);
  const headroom = await findHeadroom(free.tried, plan, { seed, meters, steps });
  tell(3);
  const symbols = own.tried.bot.spec.spec.universe.symbols;
  const controls = await trySafeguards(
    { own: own.tried, lifted: free.tried, latching: lift(own, plan, 'kept').tried },
    seed,
    loadOf(plan, symbols, targetOf(plan, 'out', 1)?.count ?? 0, 1),
    meters,
  );
  tell(4);
  const { sample, state } = lifted;
  const log_on_disk =
    state === undefined
      ? null
      : await writeToDisk(options.directory ?? tmpdir(), sample, state, meters);
  tell(PARTS);
  const passes = [on.result, lifted.result];
  const { window, production, counted, query, since, days } = history;
  return {
    schema: 'stress/1',
    environment: 'simulated_venue',
    scope: history.scope,
    coverage: coverageOf(history.scope),
    basis: plan.basis,
    multiplier: plan.multiplier,
    coverage_days: history.coverage_days,
    gaps: history.gaps,
    peaks: { window, production, counted, query, since, days },
    targets: { messages: plan.messages, volume: plan.volume },
    assumption: plan.assumption,
    passes,
    headroom,
    host: hostOf(passes),
    log_on_disk,
    controls,
    ...judge(plan, { passes, controls, log_on_disk }),
    house_numbers: BOUNDS,
    method: METHOD,
    seed,
    evidence_hash: evidenceOf(seed, passes, controls),
  };
}

function hostOf(passes: readonly PassResult[]): StressResult['host'] {
  const sum = (of: 'real_ms' | 'withheld_ms'): number =>
    rounded(passes.reduce((all, { host }) => all + host[of], 0));
  return {
    processors: availableParallelism(),
    real_ms: sum('real_ms'),
    withheld_ms: sum('withheld_ms'),
  };
}

function evidenceOf(
  seed: number,
  passes: readonly PassResult[],
  controls: readonly SafeguardResult[],
): string | null {
  const hashes = passes.map(({ schedule_hash, evidence_hash }) => [schedule_hash, evidence_hash]);
  if (hashes.some(([, evidence]) => evidence === null)) return null;
  return digest({ seed, passes: hashes, controls: controls.map(({ id, holds }) => [id, holds]) });
}

function coverageOf(scope: History['scope']): StressResult['coverage'] {
  const venue = 'gateways, networks and venues: the venue is a simulated one in the same thread';
  if (scope === 'bot') {
    return {
      covered: ['engine, risk checks, session, runner and reports of this bot, at its own peaks'],
      not_covered: [
        venue,
        'other bots, and what all of them share: Article 10 asks for the firm, see scope firm',
      ],
    };
  }
  return {
    covered: [
      'the peaks of all bots together, at the moments at which they were highest',
      'engine, risk checks, session, runner and reports, with the whole of that load in one session',
    ],
    not_covered: [
      venue,
      'sessions of several bots beside each other, on one machine or on several',
      'the server and its database under the reports of all bots at once',
      'limits that bots have in common: each session has those of its own bot',
      'several currencies: all is traded in that of the bot which is tried',
    ],
  };
}
