import { BOUNDS } from './bounds.ts';
import { describeNetTime } from './safeguard-trial.ts';
import type { SafeguardResult } from './safeguards.ts';
import type { OnDisk } from './disk.ts';
import type { PassResult } from './pass-result.ts';
import type { Plan } from './stress-plan.ts';

export interface Judged {
  /** `inconclusive`: only time that the host withheld made the test fail; run it again. */
  readonly verdict: 'pass' | 'fail' | 'inconclusive' | 'provisional';
  readonly reasons: readonly string[];
  /** Questions that the run was too small to answer; the verdict does not cover them. */
  readonly not_judged: readonly string[];
}

export interface Tested {
  readonly passes: readonly PassResult[];
  readonly controls: readonly SafeguardResult[];
  readonly log_on_disk: OnDisk | null;
}

/** Judges whether the bot withstood the load; without evidence, the verdict is not a pass. */
export function judge(plan: Plan, { passes, controls, log_on_disk: log }: Tested): Judged {
  const findings: Findings = { faults: [], byHost: [] };
  const [on, lifted] = passes;
  if (on === undefined || lifted === undefined) findings.faults.push('the test was not run');
  for (const pass of passes) {
    const own = findFaults(pass);
    const named = (what: string): string => `limits ${pass.limits}: ${what}`;
    findings.faults.push(...own.faults.map(named));
    findings.byHost.push(...own.byHost.map(named));
  }
  if (lifted !== undefined) addMissed(findings, lifted);
  if (on !== undefined) findings.faults.push(...findLimitFaults(on));
  if (log !== null && log.persisted !== log.generated) {
    findings.faults.push(`the log on disk has ${log.persisted} of ${log.generated} events`);
  }
  for (const { id, status, reason } of controls) {
    if (status === 'fail') findings.faults.push(`${id}: ${reason}`);
    if (status === 'inconclusive') findings.byHost.push(`${id}: ${reason}`);
  }
  const { faults } = findings;
  const byHost = findings.byHost.map((what) => `inconclusive, the host was busy: ${what}`);
  return {
    verdict: decideVerdict(findings, plan),
    reasons: [...faults, ...byHost, ...plan.provisional],
    not_judged: passes.flatMap((pass) =>
      listNotJudged(pass).map((what) => `limits ${pass.limits}: ${what}`),
    ),
  };
}

interface Findings {
  readonly faults: string[];
  /** Failures that the host may have caused. */
  readonly byHost: string[];
}

function decideVerdict({ faults, byHost }: Findings, { provisional }: Plan): Judged['verdict'] {
  if (faults.length > 0) return 'fail';
  if (byHost.length > 0) return 'inconclusive';
  return provisional.length > 0 ? 'provisional' : 'pass';
}

function findLimitFaults({ limiter, positions }: PassResult): string[] {
  const faults: string[] = [];
  if (limiter.limit === null) {
    faults.push('limits on: the bot has no message limit; set spec.risk.max_messages_per_second');
  } else if (limiter.offered > 0 && limiter.caught === 0) {
    faults.push('limits on: the message limit did not engage');
  }
  const { largest, limit: most } = positions;
  if (most !== null && largest > most * (1 + 1e-9)) {
    faults.push(`limits on: a position was ${largest} of the equity, and the limit is ${most}`);
  }
  return faults;
}

function listNotJudged({ limits, limiter, memory, phases }: PassResult): string[] {
  const { before, after } = getWaits(phases);
  return [
    ...(limits === 'on' && limiter.limit !== null && limiter.offered === 0
      ? ['whether the message limit engages: the load did not exceed the limit']
      : []),
    ...(before === null || after === null
      ? ['how much longer orders wait under the load: there were too few orders']
      : []),
    ...(memory.heap_slope === null || memory.messages < BOUNDS.heapMessages
      ? [`whether memory grows: there were fewer than ${BOUNDS.heapMessages} messages`]
      : []),
  ];
}

/** Returns p99 of the time until the venue acknowledges an order, before and under the load, ms. */
function getWaits(phases: PassResult['phases'], by: 'ack_ms' | 'ack_net_ms' = 'ack_ms') {
  const of = (name: string) => phases.find(({ phase }) => phase === name)?.[by].p99 ?? null;
  return { before: of('warm-up'), after: of('hold') };
}

function findFaults(pass: PassResult): Findings {
  const { orders, drops, limiter, log, memory, reconciliation } = pass;
  const faults: string[] = [];
  if (orders.sent === 0) {
    faults.push('no order reached the venue, so the test shows nothing about the bot');
  }
  if (!pass.went_on) faults.push('the session ended under the load');
  if (drops !== 0) faults.push(`${drops} orders were lost between session and venue`);
  if (log.persisted !== log.generated) {
    faults.push(`the log has ${log.persisted} of ${log.generated} order events`);
  }
  if (reconciliation.breaks > 0) {
    faults.push(`venue and session differed ${reconciliation.breaks} times`);
  }
  if (!reconciliation.agrees) faults.push('venue and session differ at the end');
  if (limiter.missed > 0) faults.push(`${limiter.missed} messages passed the message limit`);
  if (limiter.false_blocks > 0) {
    faults.push(`${limiter.false_blocks} orders were denied within the message limit`);
  }
  const { heap_slope: slope, messages } = memory;
  if (slope !== null && messages >= BOUNDS.heapMessages && slope > BOUNDS.heapPerThousand) {
    faults.push(
      `memory grew by ${slope} bytes per thousand messages (internal threshold: ${BOUNDS.heapPerThousand})`,
    );
  }
  const findings = { faults, byHost: [] };
  addLate(findings, pass);
  return findings;
}

/**
 * Adds durations that are too long; they count against the bot only if their net time is too long,
 * too.
 */
function addLate(findings: Findings, pass: PassResult): void {
  const { queue, host, durations_ms: durations } = pass;
  if (pass.evidence_hash === null) {
    (host.has_cut_short ? findings.byHost : findings.faults).push(
      'the pass was cut short: not all messages were offered',
    );
  }
  const late = (ms: number, netMs: number, mostMs: number, what: string): void => {
    if (ms <= mostMs) return;
    if (netMs > mostMs) findings.faults.push(what);
    else findings.byHost.push(`${what}, ${describeNetTime(netMs)}`);
  };
  const { max: alert } = durations.alert;
  const { max: alertNet } = durations.alert_net;
  late(alert ?? 0, alertNet ?? 0, BOUNDS.alertMs, `an alert took ${alert} ms`);
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
  const { before, after } = getWaits(phases);
  const { before: netBefore, after: netAfter } = getWaits(phases, 'ack_net_ms');
  if (before === null || after === null || netBefore === null || netAfter === null) return;
  const most = (ms: number): number => Math.max(BOUNDS.slowerTimes * ms, BOUNDS.noiseMs);
  const what = `one order in a hundred waited ${after} ms or longer, and ${before} ms before the load (internal threshold: ${BOUNDS.slowerTimes} times)`;
  if (netAfter > most(before)) faults.push(what);
  else if (after > most(netBefore)) byHost.push(`${what}, ${describeNetTime(netAfter)}`);
}

function addMissed(findings: Findings, { reached, volume, host }: PassResult): void {
  const all = [
    ...reached.map((one) => ({ what: one.class, ...one })),
    ...volume.map((one) => ({
      what: one.of === null ? one.measure : `${one.measure} of ${one.of}`,
      ...one,
    })),
  ];
  for (const { what, window_s, achieved, achieved_net: net, target, is_reached } of all) {
    if (is_reached) continue;
    const missed = `the target was not reached: ${what} in ${window_s} s: ${achieved} of ${target}`;
    const isByHost = net >= target * (1 - 1e-9) || host.has_cut_short;
    if (isByHost)
      findings.byHost.push(`${missed}, and ${net} without the time that the host ran other work`);
    else findings.faults.push(missed);
  }
}
