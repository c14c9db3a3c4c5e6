import { BOUNDS, type ControlResult } from './controls.ts';
import type { OnDisk } from './disk.ts';
import type { PassResult } from './pass.ts';
import type { Plan } from './plan.ts';

export interface Judged {
  readonly verdict: 'pass' | 'fail' | 'provisional';
  readonly reasons: readonly string[];
  /** What the run was too small to tell: the verdict says nothing of it. */
  readonly not_judged: readonly string[];
}

export interface Tested {
  readonly passes: readonly PassResult[];
  readonly controls: readonly ControlResult[];
  readonly log_on_disk: OnDisk | null;
}

/** Whether it withstood it; a verdict that nothing speaks for is no pass. */
export function judge(plan: Plan, { passes, controls, log_on_disk: log }: Tested): Judged {
  const faults: string[] = [];
  const [on, lifted] = passes;
  if (on === undefined || lifted === undefined) faults.push('it was not run');
  for (const pass of passes) {
    for (const fault of faultsOf(pass)) faults.push(`limits ${pass.limits}: ${fault}`);
  }
  faults.push(...(lifted === undefined ? [] : missedBy(lifted)));
  if (on !== undefined) {
    const { limit, offered, caught } = on.limiter;
    if (limit === null) {
      faults.push(
        'limits on: there is no message limit (set spec.risk.max_messages_per_second), and what is not there cannot engage',
      );
    } else if (offered > 0 && caught === 0) {
      faults.push('limits on: the message limit did not engage');
    }
    const { largest, limit: most } = on.positions;
    if (most !== null && largest > most * (1 + 1e-9)) {
      faults.push(`limits on: a position was ${largest} of the equity, and the limit is ${most}`);
    }
  }
  if (log !== null && log.persisted !== log.generated) {
    faults.push(`the log on disk has ${log.persisted} of ${log.generated} events`);
  }
  for (const { id, status, reason } of controls) {
    if (status === 'fail') faults.push(`${id}: ${reason}`);
  }
  const not_judged = passes.flatMap((pass) =>
    leftOpen(pass).map((what) => `limits ${pass.limits}: ${what}`),
  );
  if (faults.length > 0) {
    return { verdict: 'fail', reasons: [...faults, ...plan.provisional], not_judged };
  }
  const isProvisional = plan.provisional.length > 0;
  const verdict = isProvisional ? 'provisional' : 'pass';
  return { verdict, reasons: plan.provisional, not_judged };
}

function leftOpen({ limits, limiter, memory, phases }: PassResult): string[] {
  const { before, after } = waits(phases);
  return [
    ...(limits === 'on' && limiter.limit !== null && limiter.offered === 0
      ? ['whether the message limit engages: the load is within it']
      : []),
    ...(before === null || after === null
      ? ['how much longer orders wait under the load: there were too few of them']
      : []),
    ...(memory.heap_slope === null || memory.messages < BOUNDS.heapMessages
      ? [`whether memory grows: there were fewer than ${BOUNDS.heapMessages} messages`]
      : []),
  ];
}

/** What one order in a hundred waited, before the load and under it, ms. */
function waits(phases: PassResult['phases']) {
  const of = (name: string) => phases.find(({ phase }) => phase === name)?.ack_ms.p99 ?? null;
  return { before: of('warm-up'), after: of('hold') };
}

function faultsOf(pass: PassResult): string[] {
  const { orders, drops, limiter, log, queue, phases, memory, reconciliation } = pass;
  const faults: string[] = [];
  if (orders.sent === 0) {
    faults.push('no order came to the venue: a bot that is blocked shows nothing');
  }
  if (!pass.went_on) faults.push('the session ended under the load');
  if (pass.evidence_hash === null) faults.push('it was cut short: not all was offered');
  if (drops !== 0) faults.push(`${drops} orders were lost on the way`);
  if (log.persisted !== log.generated) {
    faults.push(`the log has ${log.persisted} of ${log.generated} order events`);
  }
  if (reconciliation.breaks > 0) {
    faults.push(`venue and session were found to differ ${reconciliation.breaks} times`);
  }
  if (!reconciliation.agrees) faults.push('venue and session do not agree at the end');
  if (limiter.missed > 0) faults.push(`${limiter.missed} messages passed the message limit`);
  if (limiter.false_blocks > 0) {
    faults.push(`${limiter.false_blocks} orders were denied within the message limit`);
  }
  const alert = pass.durations_ms.alert.max;
  if (alert !== null && alert > BOUNDS.alertMs) faults.push(`an alert took ${alert} ms`);
  if (queue.drain_max_ms > BOUNDS.drainMs) {
    faults.push(`a queue was there for more than ${BOUNDS.drainMs} ms`);
  }
  const { heap_slope: slope, messages } = memory;
  if (slope !== null && messages >= BOUNDS.heapMessages && slope > BOUNDS.heapPerThousand) {
    faults.push(
      `memory grew by ${slope} bytes for a thousand messages (a house number: ${BOUNDS.heapPerThousand})`,
    );
  }
  const { before, after } = waits(phases);
  const most = Math.max(BOUNDS.slowerTimes * (before ?? 0), BOUNDS.noiseMs);
  if (before !== null && after !== null && after > most) {
    faults.push(
      `an order in a hundred waited ${after} ms, and ${before} ms before the load (a house number: ${BOUNDS.slowerTimes} times)`,
    );
  }
  return faults;
}

function missedBy({ reached, volume }: PassResult): string[] {
  return [
    ...reached.map((one) => ({ what: one.class, ...one })),
    ...volume.map((one) => ({
      what: one.of === null ? one.measure : `${one.measure} of ${one.of}`,
      ...one,
    })),
  ]
    .filter(({ is_reached }) => !is_reached)
    .map(
      ({ what, window_s, achieved, target }) =>
        `the target was not reached: ${what} in ${window_s} s: ${achieved} of ${target}`,
    );
}
