import { BOUNDS } from './bounds.ts';
import type { writeToDisk } from './disk.ts';
import type { PassResult } from './pass.ts';
import { mayBeByHost } from './meters.ts';
import { nameVolume } from './peaks.ts';
import type { SafeguardResult } from './safeguards.ts';
import { describeNetTime } from './safeguard-trial.ts';
import type { Plan } from './stress-plan.ts';

export interface Judged {
  /** `inconclusive`: only time that the host withheld made the test fail; run it again. */
  readonly verdict: 'pass' | 'fail' | 'inconclusive' | 'provisional';
  readonly reasons: readonly string[];
  /** Questions that the run was too small to answer; the verdict does not cover them. */
  readonly not_judged: readonly string[];
}

interface Tested {
  readonly passes: readonly PassResult[];
  readonly controls: readonly SafeguardResult[];
  readonly log_on_disk: Awaited<ReturnType<typeof writeToDisk>> | null;
}

interface Findings {
  readonly faults: string[];
  /** Failures that the host may have caused. */
  readonly byHost: string[];
}

/** Judges whether the bot withstood the load; without evidence, the verdict is not a pass. */
export function judge(plan: Plan, { passes, controls, log_on_disk: log }: Tested): Judged {
  const findings: Findings = { faults: [], byHost: [] };
  const { faults } = findings;
  const [on, lifted] = passes;
  if (on === undefined || lifted === undefined) faults.push('the test was not run');
  for (const pass of passes) {
    const own = judgePass(pass);
    faults.push(...own.faults.map((what) => `limits ${pass.limits}: ${what}`));
    findings.byHost.push(...own.byHost.map((what) => `limits ${pass.limits}: ${what}`));
  }
  if (lifted !== undefined) addMissed(findings, lifted);
  if (on !== undefined) addLimitFaults(findings, on);
  if (log !== null && log.persisted !== log.generated) {
    faults.push(`the log on disk has ${log.persisted} of ${log.generated} events`);
  }
  for (const { id, status, reason } of controls) {
    if (status === 'fail') faults.push(`${id}: ${reason}`);
    if (status === 'inconclusive') findings.byHost.push(`${id}: ${reason}`);
  }
  const byHost = findings.byHost.map((what) => `inconclusive, the host was busy: ${what}`);
  return {
    verdict: decideVerdict(findings, plan),
    reasons: [...faults, ...byHost, ...plan.provisional],
    not_judged: passes.flatMap((pass) =>
      listNotJudged(pass).map((what) => `limits ${pass.limits}: ${what}`),
    ),
  };
}

function decideVerdict({ faults, byHost }: Findings, { provisional }: Plan): Judged['verdict'] {
  if (faults.length > 0) return 'fail';
  if (byHost.length > 0) return 'inconclusive';
  return provisional.length > 0 ? 'provisional' : 'pass';
}

function addLimitFaults({ faults }: Findings, { limiter, positions }: PassResult): void {
  if (limiter.limit === null) {
    faults.push('limits on: the bot has no message limit; set spec.risk.max_messages_per_second');
  } else if (limiter.offered > 0 && limiter.caught === 0) {
    faults.push('limits on: the message limit did not engage');
  }
  const { largest, limit } = positions;
  if (limit !== null && largest > limit * (1 + 1e-9)) {
    faults.push(`limits on: a position was ${largest} of the equity, and the limit is ${limit}`);
  }
}

function listNotJudged({ limits, limiter, memory, phases }: PassResult): string[] {
  const isLimitReached = limits !== 'on' || limiter.limit === null || limiter.offered > 0;
  const isMemoryJudged = memory.heap_slope !== null && memory.messages >= BOUNDS.heapMessages;
  return [
    ...(isLimitReached
      ? []
      : ['whether the message limit engages: the load did not exceed the limit']),
    ...(getWaits(phases) === undefined
      ? ['how much longer orders wait under the load: there were too few orders']
      : []),
    ...(isMemoryJudged
      ? []
      : [`whether memory grows: there were fewer than ${BOUNDS.heapMessages} messages`]),
  ];
}

function judgePass(pass: PassResult): Findings {
  const { orders, drops, limiter, log, memory, reconciliation } = pass;
  const slope = memory.messages >= BOUNDS.heapMessages ? (memory.heap_slope ?? 0) : 0;
  const checks: readonly (readonly [isFault: boolean, what: string])[] = [
    [orders.sent === 0, 'no order reached the venue, so the test shows nothing about the bot'],
    [!pass.went_on, 'the session ended under the load'],
    [drops !== 0, `${drops} orders were lost between session and venue`],
    [
      log.persisted !== log.generated,
      `the log has ${log.persisted} of ${log.generated} order events`,
    ],
    [reconciliation.breaks > 0, `venue and session differed ${reconciliation.breaks} times`],
    [!reconciliation.agrees, 'venue and session differ at the end'],
    [limiter.missed > 0, `${limiter.missed} messages passed the message limit`],
    [
      limiter.false_blocks > 0,
      `${limiter.false_blocks} orders were denied within the message limit`,
    ],
    [
      slope > BOUNDS.heapPerThousand,
      `memory grew by ${slope} bytes per thousand messages (internal threshold: ${BOUNDS.heapPerThousand})`,
    ],
  ];
  const faults = checks.flatMap(([isFault, what]) => (isFault ? [what] : []));
  const findings: Findings = { faults, byHost: [] };
  addLate(findings, pass);
  return findings;
}

/** Adds durations that are too long; they count against the bot only if their net time is too long, too. */
function addLate(findings: Findings, pass: PassResult): void {
  const { queue, host, durations_ms: durations } = pass;
  if (pass.evidence_hash === null) {
    (host.has_cut_short ? findings.byHost : findings.faults).push(
      'the pass was cut short: not all messages were offered',
    );
  }
  const late = (ms: number, netMs: number, mostMs: number, what: string): void => {
    if (ms <= mostMs) return;
    if (mayBeByHost(ms, netMs, mostMs)) {
      findings.byHost.push(`${what}, ${describeNetTime(netMs)}`);
    } else findings.faults.push(what);
  };
  const [alert, alertNet] = [durations.alert.max ?? 0, durations.alert_net.max ?? 0];
  late(alert, alertNet, BOUNDS.alertMs, `an alert took ${alert} ms`);
  const drain = `the queue took ${queue.drain_max_ms} ms to drain (internal threshold: ${BOUNDS.drainMs})`;
  late(queue.drain_max_ms, queue.drain_net_max_ms, BOUNDS.drainMs, drain);
  addSlower(findings, pass);
}

/**
 * Compares waits under the load with waits before it. The bot fails if its net wait is too long
 * even compared with a real wait before the load. It passes only if its real wait is short enough
 * compared with a net wait before the load.
 */
function addSlower({ faults, byHost }: Findings, { phases }: PassResult): void {
  const waits = getWaits(phases);
  if (waits === undefined) return;
  const { before, after, netBefore, netAfter } = waits;
  const most = (ms: number): number => Math.max(BOUNDS.slowerTimes * ms, BOUNDS.noiseMs);
  const what = `one order in a hundred waited ${after} ms or longer, and ${before} ms before the load (internal threshold: ${BOUNDS.slowerTimes} times)`;
  if (!mayBeByHost(after, netAfter, most(before))) faults.push(what);
  else if (after > most(netBefore)) byHost.push(`${what}, ${describeNetTime(netAfter)}`);
}

/**
 * Returns p99 of the time until the venue acknowledges an order, before and under the load, ms; undefined
 * with too few orders.
 */
function getWaits(phases: PassResult['phases']) {
  const of = (name: string) => phases.find(({ phase }) => phase === name);
  const [early, late] = [of('warm-up'), of('hold')];
  const [before, netBefore] = [early?.ack_ms.p99 ?? null, early?.ack_net_ms.p99 ?? null];
  const [after, netAfter] = [late?.ack_ms.p99 ?? null, late?.ack_net_ms.p99 ?? null];
  if (before === null || netBefore === null || after === null || netAfter === null)
    return undefined;
  return { before, netBefore, after, netAfter };
}

function isMostlyWithheld({ real_ms, net_ms }: PassResult['host']): boolean {
  return real_ms > 2 * net_ms;
}

function addMissed(findings: Findings, { reached, volume, host }: PassResult): void {
  const all = [
    ...reached.map((one) => ({ what: one.class as string, ...one })),
    ...volume.map((one) => ({ what: nameVolume(one), ...one })),
  ];
  for (const { what, window_s, achieved, achieved_net: net, target, is_reached } of all) {
    if (is_reached) continue;
    const missed = `the target was not reached: ${what} in ${window_s} s: ${achieved} of ${target}`;
    const share = isMostlyWithheld(host) ? 1 / 2 : 1;
    if (net >= share * target * (1 - 1e-9) || host.has_cut_short) {
      findings.byHost.push(`${missed}, and ${net} without the time that the host ran other work`);
    } else findings.faults.push(missed);
  }
}
