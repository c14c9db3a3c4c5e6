import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { bundleHash, codeOf, versionHash, type Bundle } from '../../../bots/bundle.ts';
import { invalidSpec, readHostedSpec } from '../../../bots/hosted.ts';
import { loadBot, type Bot } from '../../../bots/load-bot.ts';
import { prepare } from '../../../bots/prepare.ts';
import { ServiceError } from '../../../base/errors.ts';
import { isSystemError } from '../../../base/system-errors.ts';
import type { Log } from '../../../base/log.ts';
import { parseTimeframe } from '../../../market/timeframe.ts';
import { openHosted, openRun, type CodeLimits, type HostedRun } from '../../sandbox/hosted-run.ts';
import { tradingProblems } from '../../../bots/trading-problems.ts';
import { replaySessionFeed } from '../../replay-feed.ts';
import type { CcxtExchange } from '../../venues/ccxt-types.ts';
import { openExchange } from '../../venues/market-data.ts';
import type { FeedItem } from '../../feed.ts';
import { liveFeed } from '../../live-feed.ts';
import { warmUpOfSession } from '../../warm-up-of-session.ts';
import type { RunConfig } from './run-config.ts';

export interface RunningBot extends HostedRun {
  /** Identifies spec and code; see `versionHash`. */
  readonly hash: string;
}

/**
 * Opens the bot of a configuration.
 *
 * @throws ServiceError `file_not_found`; `invalid_spec`, also for a bot that cannot trade on live bars
 *   or lacks a limit in `risk`; `invalid_data` for a malformed bundle; `invalid_setting` for a bundle
 *   with code at an exchange; as `openHosted`.
 */
export async function openBot(
  { bot: file, bundle, exchange, venue }: RunConfig,
  limits: CodeLimits,
  signal: AbortSignal,
): Promise<RunningBot> {
  const at = venue.type === 'exchange' ? (exchange?.name ?? null) : null;
  if (bundle === undefined) {
    const bot = loadBot(file);
    if (exchange !== undefined) requireTradable(bot, at);
    return { ...(await openRun(bot)), hash: bot.hash };
  }
  const files = readBundle(bundle);
  if (venue.type === 'exchange' && codeOf(files) !== undefined) throw codeAtExchange(bundle);
  const hosted = readHostedSpec({ yaml: readText(file), files }, true);
  const run = await openHosted(hosted, limits, signal);
  if (exchange !== undefined) requireTradable(run.bot, at);
  return { ...run, hash: versionHash(hosted.hash, bundleHash(files)) };
}

function codeAtExchange(bundle: string): ServiceError {
  return new ServiceError('invalid_setting', `${bundle} has the code of a strategy`, {
    remedy: 'At an exchange only built-in strategies trade; use a simulated venue.',
  });
}

function requireTradable({ spec }: Bot, at: string | null): void {
  const problems = tradingProblems(spec, at);
  if (problems.length > 0) throw invalidSpec(problems, false);
}

const bundleSchema = z.record(z.string(), z.string());

function readBundle(file: string): Bundle {
  let value: unknown;
  try {
    value = JSON.parse(readText(file));
  } catch (error) {
    if (error instanceof ServiceError) throw error;
  }
  const { success, data } = bundleSchema.safeParse(value);
  if (success) return data;
  throw new ServiceError('invalid_data', `${file} is not a JSON object of file contents by path`, {
    remedy: 'Write the files of the strategy into it, with models in base64: {"strategy.ts": "…"}.',
  });
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (!isSystemError(error)) throw error;
    throw new ServiceError('file_not_found', `cannot read ${file} (${error.code})`);
  }
}

export interface RunningFeed {
  /** Steps after a time, ms since epoch, and the observations between them. */
  readonly items: (after: number | undefined, signal: AbortSignal) => AsyncIterable<FeedItem>;
  readonly close: () => Promise<void>;
}

/** Length of a bar, ms. */
export function barMsOf({ spec }: Bot): number {
  return parseTimeframe(spec.spec.data.timeframe).ms;
}

/**
 * Opens the bars of the exchange, or replays the data of the spec.
 *
 * @param connect see `openExchange`.
 * @throws ServiceError `invalid_spec` where the exchange lacks symbols or timeframe;
 *   `exchange_unavailable`; as `prepare`.
 */
export async function openFeed(
  { exchange, speed = 1 }: RunConfig,
  bot: Bot,
  catalogueDir: string,
  log: Log,
  connect?: (exchange: CcxtExchange) => void,
): Promise<RunningFeed> {
  const { universe, data } = bot.spec.spec;
  const timeframe = parseTimeframe(data.timeframe);
  if (exchange === undefined) {
    const { job, notes } = await prepare(bot, { catalogueDir, assertions: [], benchmark: false });
    const feed = replaySessionFeed(job, timeframe, notes, speed);
    return { items: (after, signal) => feed.items(after, signal), close: async () => {} };
  }
  const { notes: warmUpNotes, ...warmUp } = warmUpOfSession(bot, timeframe.ms);
  for (const note of warmUpNotes) log.warn(note);
  const { name, ...definition } = exchange;
  const { symbols } = universe;
  const closing = new AbortController();
  const market = openExchange(name, definition, closing.signal, connect);
  const close = async (): Promise<void> => {
    closing.abort();
    await market.close();
  };
  try {
    await market.check(symbols, timeframe.name);
  } catch (error) {
    await close();
    throw error;
  }
  return {
    items: (after, signal) =>
      liveFeed({
        exchange: market,
        symbols,
        timeframe,
        after,
        warmUp,
        signal,
        onTrouble: (text) => log.warn(`${name}: ${text}`),
      }),
    close,
  };
}
