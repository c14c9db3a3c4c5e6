/** The stress run: twice the busiest of six months, with the session code that production has. */
import { engineConfig } from '../../bots/spec.ts';
import type { BotSpec } from '../../bots/spec.ts';
import { inWorld, type TriedBot, type World } from '../conformance/world.ts';
import { BOUNDS, tryControls, type ControlResult } from './controls.ts';
import { openLoad, type Beat, type Durations, type Load, type Meters } from './load.ts';
import { CLASSES, WINDOWS, type History, type MessageClass } from './peaks.ts';
import type { Basis, Plan } from './plan.ts';
import { percentiles, rounded, slope, type Percentiles } from './samples.ts';

export interface Reached {
  readonly class: MessageClass;
  readonly window_s: number;
  readonly target: number;
  readonly offered: number;
  /** Of it, what was done within the time, by the clock of the machine. */
  readonly achieved: number;
  readonly is_reached: boolean;
}

export interface VolumeReached {
  readonly measure: string;
  readonly of: string | null;
  readonly window_s: number;
  readonly target: number;
  readonly achieved: number;
  readonly is_reached: boolean;
}

export interface PhaseResult {
  readonly phase: string;
  readonly bars: number;
  readonly asked: number;
  readonly sent: number;
  readonly denied: Readonly<Record<string, number>>;
  /** Of the machine, for all of it. */
  readonly real_ms: number;
  readonly ack_ms: Percentiles;
}

export interface PassResult {
  readonly limits: 'on' | 'lifted';
  /** What is not as in production, in this pass alone. */
  readonly lifted: readonly string[];
  readonly phases: readonly PhaseResult[];
  readonly reached: readonly Reached[];
  readonly volume: readonly VolumeReached[];
  readonly orders: { readonly asked: number; readonly sent: number; readonly denied: number };
  readonly limiter: {
    /** Orders and cancels per second; null where there is no such limit. */
    readonly limit: number | null;
    /** Orders beyond it that were asked for, denied, and sent all the same. */
    readonly offered: number;
    readonly caught: number;
    readonly missed: number;
    /** Orders within it that were denied for it. */
    readonly false_blocks: number;
  };
  /** Orders that nobody knows what became of. */
  readonly drops: number;
  readonly queue: {
    /** Messages that still waited a second after they were asked for, at most. */
    readonly depth_max: number;
    /** Until all of a bar was done, at most, ms. */
    readonly drain_max_ms: number;
  };
  readonly durations_ms: Readonly<Record<keyof Durations, Percentiles>>;
  readonly memory: {
    readonly rss_start: number;
    readonly rss_max: number;
    /** Over the hold and the soak, bytes per 1,000 messages; null of fewer than three bars. */
    readonly rss_slope: number | null;
    readonly gc_ms: number;
  };
  /** How far beyond the target it goes; null where that was not tried. */
  readonly headroom: {
    readonly messages_per_second: number;
    readonly times_target: number;
    readonly is_broken: boolean;
  } | null;
}

export interface StressResult {
  readonly schema: 'stress/1';
  readonly environment: 'simulated_venue';
  readonly scope: 'bot' | 'firm';
  readonly basis: Basis;
  readonly multiplier: number;
  readonly coverage_days: number;
  readonly gaps: History['gaps'];
  readonly peaks: Pick<History, 'window' | 'production' | 'counted' | 'query' | 'since' | 'days'>;
  readonly targets: Pick<Plan, 'messages' | 'volume'>;
  readonly assumption: Plan['assumption'];
  readonly passes: readonly PassResult[];
  readonly controls: readonly ControlResult[];
  readonly verdict: 'pass' | 'fail' | 'provisional';
  readonly reasons: readonly string[];
  /** Law are the multiplier, the six months and the five seconds; all other numbers are ours. */
  readonly house_numbers: typeof BOUNDS;
  readonly method: string;
  readonly seed: number;
}

export interface StressOptions {
  readonly seed: number;
  readonly meters: Meters;
  /** Bars of the hold; 30 by default, which is half an hour. */
  readonly holdBars?: number;
  /** So many messages are offered by the end of the soak; the target of a day beyond it is not reached. */
  readonly mostMessages?: number;
  /** Steps beyond the target, each half as much again; 8 by default. */
  readonly steps?: number;
  /** A pass offers nothing new after so long, ms of the machine; what is left is not reached. */
  readonly budgetMs?: number;
  /** Told how many parts are done, of how many. */
  readonly onProgress?: (done: number, of: number) => void;
}

const HOLD_BARS = 30;
const MOST_MESSAGES = 200_000;
const STEPS = 8;
const BUDGET_MS = 300_000;
const DAY_BARS = 1440;
const PARTS = 3;
/** p99 under load, against that before it. */
const SLOWER = 3;
/** Below it, the machine's own noise decides, ms. */
const NOISE_MS = 50;
const METHOD =
  'The engine decides at bars: all that is due until the next bar is asked for at once, so that a minute of the target comes within one second. Time at the venue is virtual and waits for the machine; durations are those of the machine, the simulated venue included, and what is not done within a window by them does not count as achieved in it. The venue hands messages over as objects: decoding is not measured. Files and connections of production are not in the run.';

/**
 * Tries a bot. It takes over the clocks of its thread (see `inVirtualTime`), and touches nothing but
 * what it is handed.
 */
export async function runStress(
  tried: TriedBot,
  history: History,
  plan: Plan,
  options: StressOptions,
): Promise<StressResult> {
  const { seed, meters, onProgress } = options;
  const on = await runPass(tried, plan, { limits: 'on', lifted: [] }, options);
  onProgress?.(1, PARTS);
  const free = lift(tried, plan);
  const lifted = await runPass(
    free.tried,
    plan,
    { limits: 'lifted', lifted: free.lifted },
    options,
  );
  onProgress?.(2, PARTS);
  const burst = loadOf(plan, targetOf(plan, 'out', 1));
  const controls = await tryControls(free.tried, seed, burst, meters);
  onProgress?.(PARTS, PARTS);
  const passes = [on, lifted];
  const { window, production, counted, query, since, days } = history;
  return {
    schema: 'stress/1',
    environment: 'simulated_venue',
    scope: history.scope,
    basis: plan.basis,
    multiplier: plan.multiplier,
    coverage_days: history.coverage_days,
    gaps: history.gaps,
    peaks: { window, production, counted, query, since, days },
    targets: { messages: plan.messages, volume: plan.volume },
    assumption: plan.assumption,
    passes,
    controls,
    ...judge(plan, passes, controls),
    house_numbers: BOUNDS,
    method: METHOD,
    seed,
  };
}

/** Whether it withstood it; a verdict that nothing speaks for is no pass. */
export function judge(
  plan: Plan,
  passes: readonly PassResult[],
  controls: readonly ControlResult[],
): Pick<StressResult, 'verdict' | 'reasons'> {
  const faults: string[] = [];
  const [on, lifted] = passes;
  if (on === undefined || lifted === undefined) faults.push('it was not run');
  for (const pass of passes) {
    const { limits, orders, drops, limiter, queue, phases } = pass;
    const say = (text: string): void => void faults.push(`limits ${limits}: ${text}`);
    if (orders.sent === 0) say('no order came to the venue: a bot that is blocked shows nothing');
    if (drops !== 0) say(`${drops} orders were lost on the way`);
    if (limiter.missed > 0) say(`${limiter.missed} messages passed the message limit`);
    if (limiter.false_blocks > 0)
      say(`${limiter.false_blocks} orders were denied within the message limit`);
    if (queue.drain_max_ms > BOUNDS.drainMs)
      say(`a queue was there for more than ${BOUNDS.drainMs} ms`);
    const [before, after] = [
      phases[0]?.ack_ms.p99,
      phases.find(({ phase }) => phase === 'hold')?.ack_ms.p99,
    ];
    if (isNumber(before) && isNumber(after) && after > Math.max(SLOWER * before, NOISE_MS)) {
      say(
        `an order in a hundred waited ${after} ms, and ${before} ms before the load (a house number: ${SLOWER} times)`,
      );
    }
  }
  const missed = [...(lifted?.reached ?? []), ...(lifted?.volume ?? [])].filter(
    (one) => !one.is_reached,
  );
  for (const one of missed) {
    const of =
      'class' in one ? one.class : `${one.measure}${one.of === null ? '' : ` of ${one.of}`}`;
    faults.push(
      `the target was not reached: ${of} in ${one.window_s} s: ${one.achieved} of ${one.target}`,
    );
  }
  if (on?.limiter.limit === null) {
    faults.push('limits on: there is no message limit, and what is not there cannot engage');
  }
  if (
    on !== undefined &&
    on.limiter.limit !== null &&
    on.limiter.offered > 0 &&
    on.limiter.caught === 0
  ) {
    faults.push('limits on: the message limit did not engage');
  }
  for (const { id, status, reason } of controls) {
    if (status === 'fail') faults.push(`${id}: ${reason}`);
  }
  if (faults.length > 0) return { verdict: 'fail', reasons: [...faults, ...plan.provisional] };
  if (plan.provisional.length > 0) return { verdict: 'provisional', reasons: plan.provisional };
  return { verdict: 'pass', reasons: [] };
}

async function runPass(
  tried: TriedBot,
  plan: Plan,
  kind: Pick<PassResult, 'limits' | 'lifted'>,
  options: StressOptions,
): Promise<PassResult> {
  const { seed, meters, holdBars = HOLD_BARS, mostMessages = MOST_MESSAGES } = options;
  const { steps = STEPS, budgetMs = BUDGET_MS } = options;
  const durations: Durations = { decision: [], check: [], ack: [] };
  return inWorld(timed(tried, meters, durations.ack), { seed }, async (world) => {
    const loader = openLoad(world, meters, durations);
    const beats: (Beat & { readonly phase: string })[] = [];
    const phases: PhaseResult[] = [];
    const memory: (readonly [messages: number, rss: number])[] = [];
    const rss = { start: meters.rss(), max: 0 };
    const gc = meters.gc();
    const until = meters.now() + budgetMs;
    let messages = 0;
    const phase = async (
      name: string,
      bars: number,
      load: (bar: number) => Load,
    ): Promise<void> => {
      const acks = durations.ack.length;
      const own: Beat[] = [];
      for (let bar = 0; bar < bars && meters.now() < until; bar += 1) {
        const beat = await loader.beat(load(bar));
        own.push(beat);
        beats.push({ ...beat, phase: name });
        messages += beat.asked.orders + beat.asked.cancels;
        rss.max = Math.max(rss.max, meters.rss());
        if (name === 'hold' || name === 'soak') memory.push([messages, meters.rss()]);
      }
      const asked = sum(own, ({ asked: { orders, cancels } }) => orders + cancels);
      phases.push({
        phase: name,
        bars: own.length,
        asked,
        sent: sum(own, ({ counts }) => counts.out),
        denied: denials(own),
        real_ms: rounded(sum(own, ({ realMs }) => realMs)),
        ack_ms: percentiles(durations.ack.slice(acks)),
      });
    };
    await world.begin();
    const minute = targetOf(plan, 'out', 60);
    const second = targetOf(plan, 'out', 1);
    const day = targetOf(plan, 'out', 86_400);
    const share = (part: number): Load => loadOf(plan, Math.ceil(minute * part));
    await phase('warm-up', 5, () => share(1 / plan.multiplier));
    await phase('ramp', 4, (bar) =>
      share((1 + (bar / 3) * (plan.multiplier - 1)) / plan.multiplier),
    );
    // Of a minute, all comes in one second: the pulses of a second are in it.
    await phase('hold', holdBars, () => loadOf(plan, Math.max(minute, second)));
    await phase('volume', 4, () => volumeLoad(plan, world));
    const soFar = sum(beats, ({ asked }) => asked.orders + asked.cancels);
    const left = Math.max(0, Math.min(day, mostMessages) - soFar);
    await phase('soak', Math.min(DAY_BARS, Math.ceil(left / Math.max(1, minute))), () => share(1));
    const headroom =
      kind.limits === 'on'
        ? null
        : await untilItBreaks(plan, { target: second, steps }, phase, beats);
    await phase('recovery', 5, () => share(0.5 / plan.multiplier));
    // What waits for another look at the venue has it.
    await world.time.pass(SETTLE_MS);
    return {
      ...kind,
      phases,
      reached: reachedOf(plan, beats),
      volume: volumeReached(plan, beats),
      orders: {
        asked: sum(beats, ({ asked }) => asked.orders),
        sent: sum(beats, ({ sent }) => sent.orders),
        denied: Object.values(denials(beats)).reduce((all, one) => all + one, 0),
      },
      limiter: limiterOf(world, beats),
      drops: loader.lost(),
      queue: queueOf(beats),
      durations_ms: {
        decision: percentiles(durations.decision),
        check: percentiles(durations.check),
        ack: percentiles(durations.ack),
      },
      memory: {
        rss_start: rss.start,
        rss_max: rss.max,
        rss_slope: perThousand(slope(memory)),
        gc_ms: rounded(meters.gc() - gc),
      },
      headroom,
    };
  });
}

const SETTLE_MS = 40_000;

function perThousand(value: number | null): number | null {
  return value === null ? null : Math.round(value * 1000);
}

/** With half as much again each time, until a second is not enough. */
async function untilItBreaks(
  plan: Plan,
  { target, steps }: { readonly target: number; readonly steps: number },
  phase: (name: string, bars: number, load: () => Load) => Promise<void>,
  beats: readonly Beat[],
): Promise<PassResult['headroom']> {
  let best = 0;
  let isBroken = false;
  for (
    let out = target, step = 0;
    step < steps && !isBroken;
    step += 1, out = Math.ceil(out * 1.5)
  ) {
    const count = beats.length;
    await phase('steps', 1, () => loadOf(plan, out));
    const beat = beats[count];
    if (beat === undefined) break;
    isBroken = beat.realMs > 1000;
    best = Math.max(best, doneWithin(beat, 'out', 1));
  }
  const times = target === 0 ? 0 : rounded(best / target);
  return { messages_per_second: best, times_target: times, is_broken: isBroken };
}

function targetOf(plan: Plan, of: MessageClass, window_s: number): number {
  return plan.messages.find((one) => one.class === of && one.window_s === window_s)?.count ?? 0;
}

/** So many messages out, of the mix that the peak had, with the market data that belong to them. */
function loadOf(plan: Plan, out: number): Load {
  const target = plan.messages.find((one) => one.class === 'out' && one.window_s === 60);
  const all = target?.mix.reduce((total, { count }) => total + count, 0) ?? 0;
  const canceled = target?.mix
    .filter(({ kind }) => kind !== 'order.submitted')
    .reduce((total, { count }) => total + count, 0);
  const cancelShare = all === 0 ? 0.5 : Math.min(0.5, (canceled ?? 0) / all);
  const cancels = Math.floor(out * cancelShare);
  const md = targetOf(plan, 'in_md', 60);
  const minute = targetOf(plan, 'out', 60);
  const fills = Math.max(0, out - 2 * cancels);
  return { out, cancels, fills, trades: minute === 0 ? md : Math.ceil(md * (out / minute)) };
}

/** A bar of twice the fills and twice the value of a minute. */
function volumeLoad(plan: Plan, { sizes, config: { risk } }: World): Load {
  const of = (measure: string): number =>
    Math.max(
      0,
      ...plan.volume
        .filter((one) => one.measure === measure && one.window_s === 60)
        .map(({ amount }) => amount),
    );
  const fills = Math.max(1, of('fills'));
  const most = Math.min(sizes.quantity, risk.max_order_qty, risk.max_order_value / sizes.price);
  const wanted = Math.max(of('value') / fills / sizes.price, sizes.unit);
  const units = Math.max(1, Math.ceil(Math.min(wanted, most) / sizes.unit - 1e-9));
  const quantity = Number((units * sizes.unit).toFixed(9));
  return { out: fills, cancels: 0, fills, trades: 0, quantity };
}

/** Of one bar, what was done within so many seconds. */
function doneWithin({ counts, realMs }: Beat, of: MessageClass, window_s: number): number {
  return Math.floor(counts[of] * Math.min(1, (window_s * 1000) / Math.max(realMs, 1e-9)));
}

function reachedOf(plan: Plan, beats: readonly Beat[]): Reached[] {
  return CLASSES.flatMap((one) =>
    WINDOWS.map((window_s) => {
      const target = targetOf(plan, one, window_s);
      const isDay = window_s === 86_400;
      const all = sum(beats, ({ counts }) => counts[one]);
      // What was asked for and denied was offered, too.
      const amounts = beats.map(({ asked, counts }) =>
        one === 'out' ? asked.orders + asked.cancels : counts[one],
      );
      const offered = isDay ? sum(amounts, (count) => count) : Math.max(0, ...amounts);
      const real = sum(beats, ({ realMs }) => realMs);
      const achieved = isDay
        ? Math.floor(all * Math.min(1, (window_s * 1000) / Math.max(real, 1e-9)))
        : Math.max(0, ...beats.map((beat) => doneWithin(beat, one, window_s)));
      return { class: one, window_s, target, offered, achieved, is_reached: achieved >= target };
    }),
  );
}

function volumeReached(plan: Plan, beats: readonly Beat[]): VolumeReached[] {
  return plan.volume.map(({ measure, of, window_s, amount: target }) => {
    const amounts = beats.map(({ fills }) => (measure === 'fills' ? fills.count : fills[measure]));
    const total = amounts.reduce((all, one) => all + one, 0);
    const achieved = rounded(window_s === 86_400 ? total : Math.max(0, ...amounts));
    return { measure, of, window_s, target, achieved, is_reached: achieved >= target };
  });
}

function limiterOf(world: World, beats: readonly Beat[]): PassResult['limiter'] {
  const { risk, controls } = world.config;
  const limit = risk.max_messages_per_second;
  const kept = controls?.messages_kept_for_cancels ?? 0;
  const made = { offered: 0, caught: 0, missed: 0, false_blocks: 0 };
  if (!Number.isFinite(limit)) return { limit: null, ...made };
  for (const { asked, sent, denied } of beats) {
    // Cancels count, and are never denied.
    const room = Math.max(0, Math.ceil(limit - kept) - asked.cancels);
    const caught =
      (denied['max_messages_per_second'] ?? 0) + (denied['messages_kept_for_cancels'] ?? 0);
    const others = Object.values(denied).reduce((all, one) => all + one, 0) - caught;
    // An order that another limit stopped came to none of these.
    made.offered += Math.max(0, asked.orders - others - room);
    made.caught += caught;
    made.missed += Math.max(0, sent.orders - room);
    made.false_blocks += Math.max(
      0,
      Math.min(asked.orders - others, room) - (asked.orders - others - caught),
    );
  }
  return { limit, ...made };
}

function queueOf(beats: readonly Beat[]): PassResult['queue'] {
  const waiting = beats.map((beat) => beat.counts.out - doneWithin(beat, 'out', 1));
  const drains = beats.map(({ realMs }) => realMs);
  return { depth_max: Math.max(0, ...waiting), drain_max_ms: rounded(Math.max(0, ...drains)) };
}

function denials(beats: readonly Beat[]): Record<string, number> {
  const all: Record<string, number> = {};
  for (const { denied } of beats) {
    for (const [reason, count] of Object.entries(denied)) all[reason] = (all[reason] ?? 0) + count;
  }
  return all;
}

function sum<T>(all: readonly T[], of: (one: T) => number): number {
  return all.reduce((total, one) => total + of(one), 0);
}

/** Notes how long the venue takes to answer an order, by the clock of the machine. */
function timed(tried: TriedBot, { now }: Meters, acks: number[]): TriedBot {
  return {
    ...tried,
    adapter(venue, context) {
      const own = tried.adapter?.(venue, context) ?? venue;
      return {
        ...own,
        async place(order) {
          const begun = now();
          try {
            return await own.place(order);
          } finally {
            acks.push(now() - begun);
          }
        },
      };
    },
  };
}

/** Without the limits of how much may be sent and executed, and with money enough that no other stands in for it. */
function lift(
  tried: TriedBot,
  plan: Plan,
): { readonly tried: TriedBot; readonly lifted: string[] } {
  const { spec } = tried.bot;
  const { cash, risk } = engineConfig(spec);
  const most = Math.max(targetOf(plan, 'out', 60), targetOf(plan, 'out', 1)) * 2 ** 4;
  const share = Math.min(1, risk.max_position_pct);
  const factor = Math.max(1, Math.ceil((2 * most * HIGHEST_PRICE) / (cash * share)));
  const { engine } = spec.spec;
  const {
    messages_kept_for_cancels: kept,
    repeated_execution: latch,
    ...others
  } = spec.spec.risk ?? {};
  const unlimited = { unlimited: 'lifted in the second pass of a stress test, and nowhere else' };
  const changed: BotSpec = {
    ...spec,
    spec: {
      ...spec.spec,
      engine: { ...engine, cash: String(cash * factor) },
      risk: { ...others, max_messages_per_second: unlimited },
    },
  };
  const lifted = [
    'max_messages_per_second',
    ...(kept === undefined ? [] : ['messages_kept_for_cancels']),
    ...(latch === undefined ? [] : ['repeated_execution']),
    ...(factor === 1 ? [] : [`cash: ${factor} times as much`]),
  ];
  return { tried: { ...tried, bot: { ...tried.bot, spec: changed } }, lifted };
}

/** Of what the harness has traded, currency. */
const HIGHEST_PRICE = 100;

function isNumber(value: number | null | undefined): value is number {
  return typeof value === 'number';
}
