import { exampleDocument } from '../../../src/api/bots.ts';
import { getVersion } from '../../../src/fleet/registry/versions.ts';
import { readChangedSpec, type SpecChanges } from '../../../src/bots/hosted.ts';
import { hostedBot } from '../../../src/bots/load-bot.ts';
import { prepare } from '../../../src/bots/prepare.ts';
import { stepsOf, type Step } from '../../../src/engine/steps.ts';
import { ENGINE_VERSION } from '../../../src/engine/version.ts';
import { endTask, appendRunEvent } from '../../../src/fleet/tasks/lifecycle.ts';
import { appendSession } from '../../../src/fleet/tasks/session-record.ts';
import { orderEvent, type SessionEvent } from '../../../src/trading/session-events.ts';
import { getTask, type TaskService } from '../../../src/fleet/tasks/tasks.ts';
import { TradingSession } from '../../../src/trading/trading-session.ts';
import { allowedToTrade } from '../tasks/market.ts';

/** A bot that may trade on paper. */
export function tradingDocument(slug: string, fast: number): ReturnType<typeof exampleDocument> {
  return allowedToTrade(exampleDocument(slug, fast));
}

interface Play {
  /** Changes the steps that the catalogue has. */
  readonly change?: (steps: Step[]) => Step[];
  /** Range of bars that the session records as missing. */
  readonly gap?: { readonly after: string; readonly before: string };
  /** Whether to stop at the first bar with a working order. */
  readonly untilItOrders?: boolean;
  /** How the session ends; it stays running by default. */
  readonly end?: 'success' | 'stop';
}

/** Processes the bars of a paper session without a worker, and records its events. */
export async function play(
  { storage, clock, catalogueDir }: TaskService,
  task_id: string,
  { change = (steps) => steps, gap, untilItOrders = false, end }: Play = {},
): Promise<void> {
  const task = await getTask(storage.read, task_id);
  const { document } = await getVersion(storage.read, task.bot_id, task.version);
  const { from, to, params } = JSON.parse(task.input) as SpecChanges;
  const bot = hostedBot(readChangedSpec(JSON.parse(document), { from, to, params }));
  const { job } = await prepare(bot, { catalogueDir, assertions: [] });
  const session = new TradingSession({
    ...job,
    symbols: bot.spec.spec.universe.symbols,
    timeoutMs: Infinity,
  });
  const events: SessionEvent[] = [];
  let steps = 0;
  for (const step of change([...stepsOf(job.instruments)])) {
    steps += 1;
    const { events: made, state } = session.push(step);
    events.push(barsOf(step), ...made.map(orderEvent));
    if (untilItOrders && state.working.length > 0) break;
  }
  if (gap !== undefined) {
    const payload = { symbol: 'SPX', ...gap, missing: 1 };
    events.push({ kind: 'data.gap', occurred_at: Date.parse(gap.before), payload });
  }
  if (end === 'stop') events.push(...session.halt().events.map(orderEvent));
  const now = clock();
  const state = session.state();
  const last = { kind: 'session.state', occurred_at: now, payload: { ...state } };
  await storage.write(async (tx) => {
    await appendRunEvent(tx, task, now, 'run.started', { attempt: 1, engine: ENGINE_VERSION });
    await appendSession(tx, task, now, [...events, last]);
    const recorded = { batches: 1, steps, state: JSON.stringify(state) };
    await tx.updateTable('trading_sessions').set(recorded).where('task_id', '=', task_id).execute();
    if (end === undefined) return;
    const summary = { ...(end === 'stop' && { stopped: true }) };
    const outcome = { status: 'success', result: '{}', summary } as const;
    await endTask(tx, task, now, outcome);
  });
}

function barsOf({ time, bars }: Step): SessionEvent {
  const rows = Object.entries(bars).map(([symbol, { open, high, low, close, volume }]) => [
    symbol,
    [open, high, low, close, volume],
  ]);
  const payload = { time: new Date(time).toISOString(), bars: Object.fromEntries(rows) as object };
  return { kind: 'data.bars', occurred_at: time, payload };
}
