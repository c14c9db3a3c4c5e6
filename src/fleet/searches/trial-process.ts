/**
 * Entry point of a sandbox process that runs trials of a search, and can reach nothing but its standard
 * input and output. It receives a `SearchInput` and then lists of trials, each with a message for each
 * of its trials as the answer; see `trial-messages.ts`.
 */
import { BUILT_IN_STRATEGIES } from '../../engine/strategies/built-in.ts';
import type { Strategy } from '../../engine/strategy.ts';
import { strategyFault } from '../../engine/strategy.ts';
import { lateError } from '../../engine/strategy-error.ts';
import { ServiceError } from '../../base/errors.ts';
import { guardLanguage, loadGuarded } from '../../base/strategy-guard.ts';
import { underWatchdog } from '../../base/watchdog.ts';
import { TrialSetups } from '../../backtest/search/trial-setups.ts';
import type { Trial, TrialResult } from '../../backtest/search/trial.ts';
import { decodeInput, type SentStrategy } from '../../backtest/shards/search-input.ts';
import { loadBundle, secureGlobals } from '../../trading/sandbox/bundle-modules.ts';
import { encodeMessage, readMessage, writeMessage } from '../../trading/sandbox/pipe.ts';
import type { LoadedMessage, TrialMessage } from './trial-messages.ts';

const { parse } = JSON;
const Bytes = Buffer;
const self = process;
const soon = setImmediate;

/** Memory for the indicators that trials share. */
const COLUMN_BYTES = 128 * 1024 * 1024;
const MOST_TEXT = 4000;

const { strategy: sent, setups } = decodeInput(readMessage());
const timeoutMs = Math.ceil(Math.max(...setups.map((setup) => setup.timeoutMs)));

function load(strategy: SentStrategy): Strategy {
  if ('name' in strategy) {
    const builtIn = BUILT_IN_STRATEGIES.get(strategy.name);
    if (builtIn === undefined) throw new Error(`there is no strategy ${strategy.name}`);
    return builtIn;
  }
  const { files, entry } = strategy;
  const exported = underWatchdog(timeoutMs, () => loadGuarded(() => loadBundle(files, entry)));
  const fault = strategyFault(exported);
  if (fault !== undefined) throw new Error(`${entry}: ${fault}`);
  return exported as Strategy;
}

function answerOf(result: TrialResult, late: ServiceError | undefined): TrialMessage {
  if (late !== undefined) return { error: late.message.slice(0, MOST_TEXT) };
  if ('error' in result) return { error: result.error.slice(0, MOST_TEXT) };
  const { metrics, sums } = result;
  return { metrics, ...(sums && { sums: Bytes.from(sums.buffer).toString('base64') }) };
}

async function serve(): Promise<void> {
  let strategy: Strategy;
  try {
    strategy = load(sent);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    writeMessage(encodeMessage({ refused: why.slice(0, MOST_TEXT) } satisfies LoadedMessage));
    return;
  }
  writeMessage(encodeMessage({ loaded: true } satisfies LoadedMessage));
  const trials = new TrialSetups(strategy, COLUMN_BYTES);
  trials.use(setups, 'files' in sent);
  /** Error in a promise of the strategy in the current trial. */
  let late: ServiceError | undefined;
  self.on('unhandledRejection', (error) => {
    late ??= lateError(error, { strategy: strategy.name, done: trials.bars });
  });
  for (;;) {
    const list = parse(Bytes.from(readMessage()).toString()) as readonly Trial[];
    for (const trial of list) {
      late = undefined;
      const result = await trials.run(trial);
      writeMessage(encodeMessage(answerOf(result, late)));
    }
  }
}

guardLanguage();
secureGlobals();
// Evaluation of this module is a microtask, and would block all other microtasks.
soon(() => void serve());
