import { isDeepStrictEqual } from 'node:util';
import { execute, type Execute } from '../backtest/execute.ts';
import type { OwnStrategy } from '../backtest/strategy-thread.ts';
import { digestsOf } from '../bots/bundle.ts';
import type { LoadModule } from '../bots/load-bot.ts';
import { readSpec } from '../bots/parse.ts';
import { engineConfig, type BotSpec } from '../bots/spec.ts';
import { resolveParams } from '../engine/params.ts';
import { ServiceError } from '../base/errors.ts';
import { takeAllSteps } from '../trading/sandbox/hosted-run.ts';
import { openSandbox, type SandboxOptions } from '../trading/sandbox/sandbox.ts';
import { readCode } from './bot-files.ts';
import type { Context } from './verb.ts';

/**
 * Loads the strategy of a bot file in the sandbox that a server uses, without access to files,
 * network or the rest of the machine. None of its code runs outside the sandbox.
 */
export async function sealedStrategy(context: Context, file: string): Promise<LoadModule> {
  const { spec } = readSpec(file);
  const module = spec?.spec.strategy.module;
  // Loading the bot reports problems of the spec.
  if (spec === undefined || module === undefined) return () => failUnread();
  const loading = open(context, spec, file, module);
  const [loaded] = await Promise.allSettled([loading]);
  return () => {
    if (loaded.status === 'rejected') throw loaded.reason;
    return loaded.value;
  };
}

function failUnread(): never {
  throw new Error('the bot file changed while it was being read');
}

async function open(
  { settings }: Context,
  spec: BotSpec,
  file: string,
  module: string,
): Promise<OwnStrategy> {
  const { files, entry } = await readCode(file, module);
  const options: SandboxOptions = {
    files,
    entry,
    symbols: spec.spec.universe.symbols,
    params: spec.spec.strategy.params,
    config: engineConfig(spec),
    timeoutMs: settings.strategy_timeout_seconds * 1000,
    memoryMb: settings.strategy_memory_mb,
  };
  const { strategy, declare, close } = await openSandbox(options);
  await close();
  const { values } = resolveParams(strategy.params, options.params);
  return {
    files: digestsOf(files),
    others: [],
    // The sandbox checked the parameters of the spec; a run with other parameters checks its own.
    strategy: {
      ...strategy,
      check: (params) => (isDeepStrictEqual(params, values) ? strategy.check?.(params) : undefined),
    },
    declare,
    execute: (setup, how) => executeSealed(options, setup, how),
  };
}

async function executeSealed(
  options: SandboxOptions,
  setup: Parameters<Execute>[0],
  { onProgress, ...how }: Parameters<Execute>[1],
): ReturnType<Execute> {
  const { instruments, params, config, signals, keepsLog } = setup;
  const { signal } = how;
  const sandbox = await openSandbox({ ...options, params, config, signals, keepsLog, signal });
  try {
    const fault = sandbox.strategy.check?.(params);
    if (fault !== undefined) throw new ServiceError('usage', `--param: ${fault}`);
    const total = Math.max(...instruments.map(({ bars }) => bars.length));
    const hosted = { needsSteps: true, take: sandbox.take, warmUp: sandbox.warmUp };
    await takeAllSteps(hosted, instruments, (done) => onProgress?.(Math.min(done, total), total));
    return await execute({ ...setup, strategy: sandbox.strategy }, how);
  } finally {
    await sandbox.close();
  }
}
