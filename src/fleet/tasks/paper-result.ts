import { outcomeOf } from '../../backtest/backtest.ts';
import { gatesOfSpec } from '../../backtest/gates.ts';
import type { BacktestJob } from '../../backtest/job.ts';
import { modelsLock } from '../../bots/prepare.ts';
import { engineConfig } from '../../bots/spec.ts';
import { lockOf } from '../../backtest/run-lock.ts';
import { ENGINE_VERSION } from '../../engine/version.ts';
import { barsDigest } from '../../market/digest.ts';
import type { SessionWork } from '../../trading/host/threads/session-work.ts';
import type { EndedSession } from '../../trading/host/threads/threaded-session.ts';
import { fileRun, type BacktestDone } from './backtest-work.ts';

export interface PaperDone extends BacktestDone {
  /** Whether the session was stopped before its feed ended. */
  readonly stopped: boolean;
}

/** Writes the result of a paper session, which is that of a backtest of the bars that it took. */
export async function writePaperResult(
  { runId, directory }: SessionWork,
  { bot, feed, session, isStopped: stopped }: EndedSession,
): Promise<PaperDone> {
  const { result, bars, workMs } = session.result();
  const { metadata, spec } = bot.spec;
  const { symbols, currency } = spec.universe;
  const config = engineConfig(bot.spec);
  const instruments = symbols.map((symbol, at) => ({
    symbol,
    bars: bars[at]!,
    source: feed.source(symbol, bars[at]!),
  }));
  const job: BacktestJob = {
    bot: { name: metadata.name, slug: metadata.slug },
    currency,
    lock: lockOf({
      spec: bot.hash,
      engine: ENGINE_VERSION,
      seed: config.seed,
      strategy: bot.strategyFiles ?? bot.strategy.name,
      data: Object.fromEntries(instruments.map((one) => [one.symbol, barsDigest(one.bars)])),
      models: modelsLock(bot.models),
    }),
    strategy: bot.strategy,
    params: bot.params,
    config,
    barMs: feed.barMs,
    instruments,
    assertions: gatesOfSpec(spec.metrics),
  };
  const made = await fileRun(directory, job, outcomeOf(job, result, { runId, wallMs: workMs }));
  return { ...made, notes: feed.notes, stopped };
}
