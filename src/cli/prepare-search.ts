import { resolve } from 'node:path';
import type { BacktestJob } from '../backtest/job.ts';
import type { StrategySource } from '../backtest/strategy-source.ts';
import type { Bot, Overrides } from '../bots/load-bot.ts';
import { ServiceError } from '../base/errors.ts';
import { untilAborted } from '../base/until-aborted.ts';
import type { Context } from './verb.ts';

interface PreparedSearch {
  readonly bot: Bot;
  /** Contains the outputs of the bot's models. */
  readonly job: BacktestJob;
  readonly source: StrategySource;
}

/**
 * Loads the bot of a search with its data. Ctrl-C ends this at once.
 *
 * @param path of the bot file
 * @throws ServiceError `interrupted`, which says that no trial has run
 */
export async function prepareSearch(
  context: Context,
  path: string,
  overrides: Pick<Overrides, 'from' | 'to' | 'columns' | 'repair' | 'holdout'>,
): Promise<PreparedSearch> {
  const { signal } = context;
  try {
    return await untilAborted(signal, () => readSearch(context, path, overrides));
  } catch (error) {
    if (!signal.aborted) throw error;
    throw new ServiceError(
      'interrupted',
      'interrupted before the first trial: no trial was run or saved by this command',
      {
        remedy: 'Run the same command again; it also resumes what an earlier one has saved.',
        cause: error,
      },
    );
  }
}

async function readSearch(
  context: Context,
  path: string,
  { from, to, columns, repair, holdout }: Parameters<typeof prepareSearch>[2],
): Promise<PreparedSearch> {
  const { loadBot } = await import('../bots/load-bot.ts');
  const { prepare, strategySource } = await import('../bots/prepare.ts');
  const { signalsOver } = await import('../bots/models/signals.ts');
  const { ownStrategiesOf } = await import('./own-strategies.ts');
  const { load } = ownStrategiesOf(context);
  const overrides = { params: {}, from, to, columns, repair, holdout };
  const bot = loadBot(resolve(context.cwd, path), overrides, load);
  const { catalogue_dir: catalogueDir } = context.settings;
  const { job, notes } = await prepare(bot, { catalogueDir, assertions: [] });
  for (const note of notes) context.message(`note: ${note}`);
  const signals = await signalsOver(bot.models, job.instruments, context.signal);
  return { bot, job: { ...job, signals }, source: strategySource(bot) };
}
