import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Engine, type EngineSetup } from '../engine/engine.ts';
import { explainStrategyError } from '../engine/strategy-error.ts';
import { inSlices, underWatchdog } from '../watchdog.ts';

export interface Rerun {
  /** As `events.ndjson` has them. */
  readonly lines: readonly string[];
  /** See `hashOfLines`. */
  readonly events_hash: string;
  /** Why the strategy did not come to the end, where it did not. */
  readonly failure: string | undefined;
}

/**
 * Runs an engine from its first bar to its last, as a backtest does, and keeps what it did also where
 * the strategy failed.
 *
 * @param isHalted whether all orders are canceled in the end.
 */
export async function rerun(
  setup: EngineSetup,
  { timeoutMs, isHalted = false }: { readonly timeoutMs: number; readonly isHalted?: boolean },
): Promise<Rerun> {
  const engine = new Engine(setup);
  const slice = inSlices((steps) => engine.advance(steps));
  let failure: string | undefined;
  if (setup.instruments.some(({ bars }) => bars.length > 0)) {
    try {
      while (underWatchdog(timeoutMs, slice)) await nextTurn();
    } catch (error) {
      engine.endTurn();
      const context = { strategy: setup.strategy.name, done: engine.done, timeoutMs };
      const reason = explainStrategyError(error, context);
      failure = reason instanceof Error ? reason.message : String(reason);
    }
    // As a session does whose strategy has failed.
    if (isHalted || failure !== undefined) engine.halt();
  }
  const lines: string[] = [];
  for (const event of engine.result().journal.events()) lines.push(JSON.stringify(event));
  return { lines, events_hash: hashOfLines(lines), failure };
}

/** SHA-256, in hex, of the lines, each with its line feed: `hashes.events` of a backtest. */
export function hashOfLines(lines: Iterable<string>): string {
  const hash = createHash('sha256');
  for (const line of lines) hash.update(`${line}\n`);
  return hash.digest('hex');
}
