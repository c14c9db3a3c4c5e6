import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Engine } from '../../engine/engine.ts';
import type { EngineSetup } from '../../engine/engine-setup.ts';
import type { Bars } from '../../market/bars.ts';
import { explainStrategyError } from '../../engine/strategy-error.ts';
import { mergeTimes } from '../../engine/steps.ts';
import { applySupervision, type SupervisionInput } from '../../trading/session-supervision.ts';
import { runStrategy } from '../../base/strategy-guard.ts';
import { inSlices } from '../../base/watchdog.ts';

export interface Rerun {
  readonly lines: readonly string[];
  readonly events_hash: string;
  /** Why the strategy failed, if it did. */
  readonly failure: string | undefined;
}

/** A recorded supervision input, and the time of the last bars before it; undefined before all bars. */
export interface RecordedSupervision {
  readonly after: number | undefined;
  readonly input: SupervisionInput;
}

export interface RerunOptions {
  readonly timeoutMs: number;
  /** Whether all orders are canceled at the end. */
  readonly isHalted?: boolean;
  /** In recorded order. */
  readonly supervision?: readonly RecordedSupervision[];
}

/**
 * Runs an engine from its first bar to its last, like a backtest, and returns the events even if the
 * strategy fails.
 */
export async function rerun(
  setup: EngineSetup,
  { timeoutMs, isHalted = false, supervision = [] }: RerunOptions,
): Promise<Rerun> {
  const engine = new Engine(setup);
  /** Number of steps before the next supervision input. */
  let pause = Infinity;
  const slice = inSlices(
    (steps) => engine.advance(Math.min(steps, pause - engine.done)) && engine.done < pause,
  );
  const run = async (): Promise<void> => {
    if (engine.done >= pause) return;
    while (runStrategy(timeoutMs, slice)) await nextTurn();
  };
  let failure: string | undefined;
  if (setup.instruments.some(({ bars }) => bars.length > 0)) {
    try {
      const times = supervision.length === 0 ? [] : mergeTimes(setup.instruments.map(barsOf));
      for (const { after = -Infinity, input } of supervision) {
        pause = times.filter((time) => time <= after).length;
        await run();
        applySupervision(engine, input);
      }
      pause = Infinity;
      await run();
    } catch (error) {
      engine.endTurn();
      const context = { strategy: setup.strategy.name, done: engine.done, timeoutMs };
      const reason = explainStrategyError(error, context);
      failure = reason instanceof Error ? reason.message : String(reason);
    }
    // A session does the same when its strategy fails.
    if (isHalted || failure !== undefined) engine.halt();
  }
  const lines: string[] = [];
  for (const event of engine.result().journal.events()) lines.push(JSON.stringify(event));
  return { lines, events_hash: hashOfLines(lines), failure };
}

function barsOf({ bars }: EngineSetup['instruments'][number]): Bars {
  return bars;
}

/** SHA-256, in hex, of the lines, each with its line feed: `hashes.events` of a backtest. */
export function hashOfLines(lines: Iterable<string>): string {
  const hash = createHash('sha256');
  for (const line of lines) hash.update(`${line}\n`);
  return hash.digest('hex');
}
