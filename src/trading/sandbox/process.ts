/**
 * Entry point of a strategy process. It runs the strategy in an engine of its own on the bars that
 * the server sends, and returns the commands of the strategy. The server uses nothing else from it.
 * The process reads, runs and writes in turn, and exits when its input ends. Only reading and
 * writing happen outside the watchdog.
 */
import { deserialize } from 'node:v8';
import { declaredIndicators } from '../../engine/declared-indicators.ts';
import { Engine } from '../../engine/engine.ts';
import { forkStrategy } from '../../engine/forked-strategy.ts';
import { REQUEST_FIELDS } from '../../engine/orders/order-request.ts';
import type { OrderRequest } from '../../engine/orders/order.ts';
import { resolveParams } from '../../engine/params.ts';
import { growingSignals } from '../../engine/model-signals.ts';
import { strategyFault } from '../../engine/strategy.ts';
import type { Broker, Strategy, StrategyContext } from '../../engine/strategy.ts';
import { explainStrategyError, lateError } from '../../engine/strategy-error.ts';
import { ServiceError } from '../../base/errors.ts';
import { allocateBars } from '../../market/bars.ts';
import { guardLanguage, loadGuarded, runStrategy } from '../../base/strategy-guard.ts';
import { inSlices, underWatchdog } from '../../base/watchdog.ts';
import { loadBundle, secureGlobals } from './bundle-modules.ts';
import type { Command, Failure, Loaded, Ordered, Setup } from './messages.ts';
import { encodeMessage, readMessage, writeMessage } from './pipe.ts';
import { decodeSteps } from './step-codec.ts';
import { decodeWarmUp } from './warm-up-codec.ts';

const self = process as NodeJS.Process & { readonly _tickCallback: () => void };
const soon = setImmediate;

/** Steps per reply, so that a reply stays below the size limit. */
const SLICE_STEPS = 256;

const setup = deserialize(readMessage()) as Setup;
const { files, entry, symbols, params, config, past, keepsLog, timeoutMs } = setup;
const { signals, append } = growingSignals(setup.signals, symbols.length);
/** Whether `create` has returned. */
let isCreated = false;
/** Commands of the strategy since the last reply. */
let commands: Command[] = [];
/** Number of steps that the server has sent. */
let received = 0;
/** Number of these steps before the current message. */
let earlier = 0;
let engine: Engine;
let failed: Failure | undefined;
let name = entry;
/** Error of a promise of the strategy that no code handles. */
let late: ServiceError | undefined;
self.on('unhandledRejection', (error) => {
  late ??= lateError(error, { strategy: name, done: engine.done });
});

/** Wraps the broker and the log so that each call of the strategy is recorded. */
function recordCommands(context: StrategyContext): StrategyContext {
  const { broker } = context;
  const recorder: Broker = {
    get cash() {
      return broker.cash;
    },
    get equity() {
      return broker.equity;
    },
    position: (instrument) => broker.position(instrument),
    entryPrice: (instrument) => broker.entryPrice(instrument),
    working: (instrument) => broker.working(instrument),
    order(request) {
      // Each field is read once: a getter could return another value the second time.
      const { instrument } = request;
      const rest = fieldsOf(request);
      const order = broker.order({ ...rest, instrument });
      commands.push([stepNow(), 'order', instrument.index, rest]);
      return order;
    },
    target(instrument, weight) {
      const order = broker.target(instrument, weight);
      commands.push([stepNow(), 'target', instrument.index, weight]);
      return order;
    },
    cancel(order) {
      const { id } = order;
      broker.cancel({ id });
      commands.push([stepNow(), 'cancel', id]);
    },
  };
  const log = (message: string): void => {
    context.log(message);
    for (const { text } of engine.takeLog()) commands.push([stepNow(), 'log', text]);
  };
  return { ...context, broker: recorder, log };
}

/** −1 within `create`. */
const stepNow = (): number => (isCreated ? engine.done : -1);

type Fields = Extract<Command, { 1: 'order' }>[3];

function fieldsOf(request: OrderRequest): Fields {
  const fields = REQUEST_FIELDS.map((field) => [field, request[field]] as const)
    .filter(([, value]) => value !== undefined)
    .map(([field, value]) => [
      field,
      typeof value === 'object' ? { percent: value.percent } : value,
    ]);
  return Object.fromEntries(fields) as Fields;
}

/** @throws ServiceError `invalid_strategy` */
function load(): Loaded {
  const exported = loadGuarded(() => loadBundle(files, entry));
  const fault = strategyFault(exported);
  if (fault !== undefined) {
    throw new ServiceError('invalid_strategy', `${entry}: ${fault}`, {
      remedy: 'Write `export default defineStrategy({ name, description, params, create })`.',
    });
  }
  const strategy = exported as Strategy;
  ({ name } = strategy);
  const { values, problems } = resolveParams(strategy.params, params);
  const check = problems.length > 0 ? undefined : checkOf(strategy, values);
  const instruments = symbols.map((symbol) => ({ symbol, bars: allocateBars(0) }));
  const traded = past === undefined ? strategy : forkStrategy(strategy, pastOf(strategy, past));
  const recorded: Strategy = {
    ...traded,
    create(context) {
      const started = traded.create(recordCommands(context));
      isCreated = true;
      return started;
    },
  };
  const run = { instruments, strategy: recorded, params: values, config, signals, keepsLog };
  engine = new Engine(run);
  const { description, shorts, instruments: count, signals: reads } = strategy;
  const indicators = indicatorsOf(strategy, values);
  return {
    name,
    description,
    params: strategy.params as Loaded['params'],
    ...(count && { instruments: { min: count.min, ...(count.max < Infinity && count) } }),
    ...(reads !== undefined && { signals: [...reads] }),
    ...(shorts !== undefined && { shorts }),
    ...(check !== undefined && { check }),
    ...(indicators !== undefined && { indicators }),
  };
}

function pastOf(
  { params: declared }: Strategy,
  { params: given, until }: NonNullable<Setup['past']>,
) {
  return { params: resolveParams(declared, given).values, until, seed: config.seed };
}

/** Undefined for a declaration that throws, because the run fails with its error. */
function indicatorsOf(
  strategy: Strategy,
  values: Parameters<NonNullable<Strategy['check']>>[0],
): Loaded['indicators'] {
  if (strategy.indicators === undefined) return undefined;
  try {
    return loadGuarded(() => declaredIndicators(strategy, values, symbols, config)).map(
      ({ label, timeframe, barsPerEntry, warmUp: { ready, settled } }) => ({
        label: label.slice(0, 1000),
        timeframe,
        barsPerEntry,
        warmUp: { ready, settled },
      }),
    );
  } catch {
    return undefined;
  }
}

function checkOf(strategy: Strategy, values: Parameters<NonNullable<Strategy['check']>>[0]) {
  try {
    return loadGuarded(() => strategy.check?.(values));
  } catch (error) {
    if (error instanceof ServiceError) throw error;
    return `the strategy's check() threw: ${String(error)}`;
  }
}

function failureOf(error: unknown): Failure {
  if (error instanceof ServiceError) {
    const { code, message, remedy = '' } = error;
    return { code, message: message.slice(0, 4000), remedy } as Failure;
  }
  const what = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  if (error instanceof SyntaxError) {
    return {
      code: 'invalid_strategy',
      message: `${placeOf(error) ?? entry}: ${what}`.slice(0, 4000),
      remedy: 'Correct the file. Types must be erasable: no enum, no namespace.',
    };
  }
  return {
    code: 'invalid_strategy',
    message: `${entry}: threw while it was loading: ${what}`.slice(0, 4000),
    remedy: 'Move the work into create() or onBar(), and fix this error.',
  };
}

/** `file:line` of an error in a file of the bundle; undefined if V8 does not state it. */
function placeOf({ stack }: Error): string | undefined {
  return /file:\/\/\/strategy\/([^\s:]+:\d+)/.exec(stack ?? '')?.[1];
}

function loadReply(): Uint8Array {
  try {
    return encodeMessage({ loaded: load() });
  } catch (error) {
    return encodeMessage({ refused: failureOf(error) });
  }
}

/** The watchdog ends code without running its `catch` blocks, so the timeout is caught here. */
function timedLoadReply(): Uint8Array {
  try {
    return underWatchdog(timeoutMs, loadReply);
  } catch {
    const message = `${entry} did not load within ${timeoutMs / 1000} s`;
    const remedy = 'Look for an endless loop.';
    return encodeMessage({ refused: { code: 'strategy_timeout', message, remedy } });
  }
}

interface Answer {
  readonly reply: Uint8Array;
  readonly isMore: boolean;
}

/**
 * Does the work and encodes the reply under one watchdog, because the start of its thread takes longer
 * than most steps.
 */
function answer(work: () => boolean): Answer {
  try {
    return runStrategy(timeoutMs, () => {
      const isMore = work();
      // Node would otherwise run promise callbacks only when this process is idle.
      self._tickCallback();
      if (late !== undefined) throw late;
      return { reply: stepReply(isMore), isMore };
    });
  } catch (error) {
    failed = explainFailure(error);
    return { reply: underWatchdog(timeoutMs, () => stepReply(false)), isMore: false };
  }
}

/** Runs under the watchdog, because the properties of a thrown object may be code. */
function explainFailure(error: unknown): Failure {
  try {
    return underWatchdog(timeoutMs, () => {
      engine.endTurn();
      const { done } = engine;
      return failureOf(explainStrategyError(error, { strategy: name, done, timeoutMs }));
    });
  } catch {
    const message = `strategy ${name} threw a value that cannot be read`;
    return { code: 'strategy_failed', message, remedy: 'Throw instances of Error only.' };
  }
}

function stepReply(isMore: boolean): Uint8Array {
  // Once the account is ruined, the engine ignores further steps.
  const taken = failed === undefined && !isMore ? received : engine.done;
  // A failed step does not count as done. An error that the strategy caught or left to a promise
  // appears only after the step.
  const done = failed === undefined ? taken : Math.max(earlier, Math.min(taken, received - 1));
  const ordered: Ordered = { done, commands, ...(failed && { failed }) };
  return encodeMessage(ordered);
}

/** Its own function, so that the message is not kept while the strategy runs. */
function warmUp(): void {
  const before = readMessage();
  underWatchdog(timeoutMs, () => {
    for (const part of decodeWarmUp(before)) engine.warmUp(part);
  });
}

function receive(message: Uint8Array): void {
  const steps = decodeSteps(symbols, message, signals.names.length, append);
  received += steps.length;
  for (const step of steps) engine.append(step);
}

/**
 * Takes the steps of a message, and replies after each slice of them.
 * @returns false once the strategy has failed.
 */
function takeSteps(message: Uint8Array): boolean {
  earlier = received;
  const slice = inSlices((count) => engine.advance(Math.min(count, SLICE_STEPS)));
  let work = (): boolean => {
    receive(message);
    return slice();
  };
  for (let isMore = true; isMore; work = slice) {
    const answered = answer(work);
    writeMessage(answered.reply);
    commands = [];
    ({ isMore } = answered);
  }
  return failed === undefined;
}

function serve(): void {
  writeMessage(timedLoadReply());
  warmUp();
  while (takeSteps(readMessage()));
  self.exit(0);
}

guardLanguage();
secureGlobals();
// Evaluation of this module is a microtask, and would block all other microtasks.
soon(serve);
