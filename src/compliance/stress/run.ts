/** Runs the stress test: a multiple of the peaks of six months, on the session code of production. */
import { availableParallelism, tmpdir } from 'node:os';
import { requireCcxt } from '../../trading/venues/ccxt-client.ts';
import { digest } from '../evidence-digest.ts';
import type { TriedBot } from '../conformance/tried-session.ts';
import { BOUNDS } from './bounds.ts';
import { writeToDisk } from './disk.ts';
import { findHeadroom } from './headroom.ts';
import type { History } from './history.ts';
import { judge } from './judge.ts';
import { lift, widen } from './lift.ts';
import { countOut, createLoad } from './load-schedule.ts';
import type { Meters } from './meters.ts';
import { runPass, type PassResult } from './pass.ts';
import { trySafeguards, type SafeguardResult } from './safeguards.ts';
import { rounded, sum } from './samples.ts';
import type { Plan } from './stress-plan.ts';

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
  /** Directory for a temporary log; the system's by default. */
  readonly directory?: string;
  /** Called with the number of completed steps and their total. */
  readonly onProgress?: (done: number, of: number) => void;
}

const PARTS = 5;
const STEPS_OF_PART = 100;
const METHOD =
  'The engine decides at bars: all messages that are due before the next bar are sent at once, so that a minute of the target arrives within one second. Time at the venue is virtual and waits for the machine. Durations are measured on the machine and include the simulated venue; messages that are not processed within a window do not count as achieved in it. The log of the passes is in memory; log_on_disk measures separately how a log on disk handles the same events. Time in which the host ran other work, measured as the time for which this thread waited for a processor, does not count against the bot: figures named net exclude it. If the host withheld more than a tenth of a period, net is the processor time of the thread; if the processor ran slower than at its best in this run, net is scaled to that best. A figure that is too high only because of the host makes the verdict inconclusive, as does one whose net is at most twice its threshold while the host withheld most of the time. The venue passes messages as objects, so decoding is not measured. The venue and the bot share one clock, so there is no offset. Production files and connections are not part of the run.';

/**
 * Tests a bot with its own load, or with the history of a firm, with the load of all bots in one session.
 * Replaces the clocks of its thread during the test (see `inVirtualTime`).
 *
 * @throws ServiceError `conflict` if ccxt, which the adapter of exchanges needs, is not installed.
 */
export async function runStress(
  tried: TriedBot,
  history: History,
  plan: Plan,
  options: StressOptions,
) {
  requireCcxt();
  const { seed, meters, holdBars = 30, mostMessages = 200_000, steps = 8 } = options;
  const { directory = tmpdir(), onProgress } = options;
  const report = (part: number, share = 0): void =>
    onProgress?.(Math.floor((part + share) * STEPS_OF_PART), PARTS * STEPS_OF_PART);
  const play = (part: number, { tried: bot, changes }: ReturnType<typeof lift>) => {
    const kind = { limits: part === 0 ? 'on' : 'lifted', lifted: changes } as const;
    const onBar = (done: number, of: number): void => report(part, done / of);
    return runPass(bot, plan, kind, { seed, meters, holdBars, mostMessages, onBar });
  };
  const own = history.scope === 'firm' ? widen(tried, plan) : { tried, changes: [] };
  const free = lift(own, plan, 'lifted');
  const on = await play(0, own);
  report(1);
  const lifted = await play(1, free);
  report(2);
  const headroom = await findHeadroom(free.tried, plan, { seed, meters, steps });
  report(3);
  const bots = { own: own.tried, lifted: free.tried, latching: lift(own, plan, 'kept').tried };
  const { symbols } = own.tried.bot.spec.spec.universe;
  const load = createLoad(plan, symbols, countOut(plan, 1), 1);
  const controls = await trySafeguards(bots, seed, load, meters);
  report(4);
  const { sample, state } = lifted;
  const log_on_disk =
    state === undefined ? null : await writeToDisk(directory, sample, state, meters);
  report(PARTS);
  const passes = [on.result, lifted.result];
  const { window, production, counted, query, since, days } = history;
  return {
    schema: 'stress/1' as const,
    environment: 'simulated_venue' as const,
    scope: history.scope,
    coverage: COVERAGE[history.scope],
    basis: plan.basis,
    multiplier: plan.multiplier,
    coverage_days: history.coverage_days,
    gaps: history.gaps,
    peaks: { window, production, counted, query, since, days },
    targets: { messages: plan.messages, volume: plan.volume },
    assumption: plan.assumption,
    passes,
    headroom,
    /** The machine during the passes. */
    host: {
      processors: availableParallelism(),
      real_ms: rounded(sum(passes, ({ host }) => host.real_ms)),
      withheld_ms: rounded(sum(passes, ({ host }) => host.withheld_ms)),
    },
    log_on_disk,
    controls,
    ...judge(plan, { passes, controls, log_on_disk }),
    house_numbers: BOUNDS,
    method: METHOD,
    seed,
    evidence_hash: hashEvidence(seed, passes, controls),
  };
}

export type StressResult = Awaited<ReturnType<typeof runStress>>;

/** Returns the SHA-256 of the load and its results without times; null if a pass was cut short. */
function hashEvidence(
  seed: number,
  passes: readonly PassResult[],
  controls: readonly SafeguardResult[],
): string | null {
  const hashes = passes.map(({ schedule_hash, evidence_hash }) => [schedule_hash, evidence_hash]);
  if (hashes.some(([, evidence]) => evidence === null)) return null;
  return digest({ seed, passes: hashes, controls: controls.map(({ id, holds }) => [id, holds]) });
}

const VENUE = 'gateways, networks and venues: the venue is a simulated one in the same thread';
const COVERAGE = {
  bot: {
    covered: ['engine, risk checks, session, runner and reports of this bot, at its own peaks'],
    not_covered: [
      VENUE,
      'other bots and shared systems: Article 10 concerns the whole firm, see scope firm',
    ],
  },
  firm: {
    covered: [
      'the highest peaks of all bots together',
      'engine, risk checks, session, runner and reports, with all of that load in one session',
    ],
    not_covered: [
      VENUE,
      'concurrent sessions of several bots, on one machine or on several',
      'the server and its database while all bots report at once',
      'limits that bots share: each session has only the limits of its own bot',
      'several currencies: all trades are in the currency of the tested bot',
    ],
  },
};
