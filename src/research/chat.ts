/**
 * Runs the turns of this process. A turn does not depend on the caller's connection: if the caller
 * disconnects, the turn continues within its budget and its answer is stored.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { ServiceError } from '../base/errors.ts';
import type { Log } from '../base/log.ts';
import { createRateLimiter, type RateLimit } from '../base/rate-limit.ts';
import type { Scope } from '../base/scopes.ts';
import type { StorageService } from '../storage/storage.ts';
import { newWorkerId, retire } from '../fleet/tasks/worker-id.ts';
import type { AnswerOutcome, Answerer, Budget } from './answering.ts';
import { NO_USAGE } from './answering.ts';
import type { Ask } from './call-api.ts';
import { askReadingOnly, onlyReads } from './reading-only.ts';
import { callTool, refusal, type ToolAnswer, type ToolRefusal } from './tool.ts';
import { toolNamed, TOOLS } from './tools.ts';
import { argsText } from './turn-events.ts';
import { CANCELED, INTERRUPTED, type ToolUse, type Turn, type TurnError } from './turn-rows.ts';
import {
  cancelTurn,
  endedOf,
  endTurn,
  getTurn,
  recordToolCall,
  type BegunTurn,
  type TurnContext,
} from './turns.ts';

/** Progress of a running turn. The last part of a stream is `turn`. */
export type TurnPart =
  | { readonly event: 'text'; readonly data: { readonly text: string } }
  | { readonly event: 'tool_call'; readonly data: Pick<ToolUse, 'tool' | 'args'> }
  | { readonly event: 'tool_result'; readonly data: Omit<ToolUse, 'args'> }
  | { readonly event: 'turn'; readonly data: Turn };

export interface ChatOptions extends StorageService {
  readonly answerer: Answerer;
  readonly budget: Budget;
  readonly log: Pick<Log, 'error'>;
}

/** Identity with which a turn calls the API. */
export interface TurnCaller {
  readonly administrator_id: string;
  readonly ask: Ask;
  readonly scopes: ReadonlySet<Scope>;
}

export interface Chat extends TurnContext {
  readonly answerer: Answerer;
  /**
   * Calls `begin` if the limits on running turns allow another one.
   * @param who the administrator; undefined for scheduled turns, which have no limits of their own.
   * @throws ServiceError `overloaded` if the server runs too many turns; `rate_limited` with the reason
   * `turns` if this administrator does.
   */
  readonly admit: <T>(who: string | undefined, begin: () => Promise<T>) => Promise<T>;
  /** Starts to answer a turn and returns at once. */
  readonly run: (turn: BegunTurn, caller: TurnCaller) => void;
  /** Cancels the last turn of a session; see `cancelTurn`. */
  readonly cancel: (by: string, ref: string, session_id: string) => Promise<Turn>;
  /** Streams a turn. Yields undefined while there is nothing new, at least every two seconds. */
  readonly follow: (turn_id: string) => AsyncGenerator<TurnPart | undefined, void>;
  /** Resolves with the turn when it ends, or with the running turn after `ms`. */
  readonly waitFor: (turn_id: string, ms: number) => Promise<Turn>;
  /** Interrupts running turns and waits until they are stored. */
  readonly stop: () => Promise<void>;
}

/** Turns in one process at the same time; each holds a connection to a provider. */
const MOST_RUNNING = 256;
/** Running turns of one administrator, so that others can still ask. */
const MOST_PER_ADMINISTRATOR = 128;
/** Rate per administrator. Every turn is stored forever and may cost money. */
const TURNS: RateLimit = { burst: 300, intervalMs: 2000 };
/** Time for a canceled turn to store its partial answer. */
const CANCEL_MS = 2000;
const POLL_MS = 250;
const WATCH_EVERY_MS = 1000;
/** Interval at which `follow` yields undefined, so that its caller notices a closed connection. */
const KEEP_ALIVE_MS = 2000;
const RETRY_SECONDS = 5;

type AbortReason = 'seconds' | 'stopping' | 'canceled' | 'dropped';

interface Live {
  readonly administrator_id: string;
  readonly parts: TurnPart[];
  readonly abort: (reason: AbortReason) => void;
  hasEnded: boolean;
  /** Resolves with the next part, or at the end. */
  changed: PromiseWithResolvers<void>;
  done: Promise<void>;
}

export function openChat({ storage, clock, answerer, budget, log }: ChatOptions): Chat {
  const worker_id = newWorkerId();
  const context: TurnContext = { storage, clock, answerer, budget, worker_id };
  const lives = new Map<string, Live>();
  /** Administrators of turns that are about to begin. */
  const beginning: (string | undefined)[] = [];
  const waitMsOf = createRateLimiter(clock, TURNS);
  // A turn can also be canceled through another server, which only changes the database.
  const watch = async (): Promise<void> => {
    if (lives.size === 0) return;
    const ended = await endedOf(storage.read, [...lives.keys()]);
    for (const turn_id of ended) lives.get(turn_id)?.abort('dropped');
  };
  const watching = setInterval(() => void watch().catch(() => {}), WATCH_EVERY_MS).unref();
  let isStopping = false;

  const chat: Chat = {
    ...context,
    answerer,
    async admit(who, begin) {
      const running = lives.size + beginning.length;
      if (isStopping || running >= MOST_RUNNING) throw tooManyTurns(running);
      if (who !== undefined) {
        const runningBy = [...lives.values()].map(({ administrator_id: id }) => id);
        const own = [...runningBy, ...beginning].filter((id) => id === who).length;
        if (own >= MOST_PER_ADMINISTRATOR)
          throw tooManyOfOne(`${own} of your questions are still being answered`);
        const waitMs = waitMsOf(who);
        if (waitMs > 0)
          throw tooManyOfOne('you are asking questions too fast', Math.ceil(waitMs / 1000));
      }
      beginning.push(who);
      try {
        return await begin();
      } finally {
        beginning.splice(beginning.indexOf(who), 1);
      }
    },
    run(turn, caller) {
      const aborting = new AbortController();
      const live: Live = {
        administrator_id: caller.administrator_id,
        parts: [],
        abort: (reason) => aborting.abort(reason),
        hasEnded: false,
        changed: Promise.withResolvers(),
        done: Promise.resolve(),
      };
      const emit = (...parts: readonly TurnPart[]): void => {
        live.parts.push(...parts);
        const { resolve } = live.changed;
        live.changed = Promise.withResolvers();
        resolve();
      };
      lives.set(turn.turn_id, live);
      if (isStopping) live.abort('stopping');
      const timer = setTimeout(live.abort, turn.budget.seconds * 1000, 'seconds');
      const answering = answer(context, answerer, turn, caller, aborting, emit, log);
      live.done = answering.finally(() => {
        clearTimeout(timer);
        lives.delete(turn.turn_id);
        live.hasEnded = true;
        emit();
      });
    },
    cancel: (by, ref, session_id) =>
      cancelTurn(context, by, ref, session_id, async (turn_id) => {
        const live = lives.get(turn_id);
        live?.abort('canceled');
        if (live !== undefined) await settlesWithin(live.done, CANCEL_MS);
      }),
    follow: (turn_id) => followTurn(context, lives, turn_id),
    async waitFor(turn_id, ms) {
      const until = performance.now() + ms;
      const live = lives.get(turn_id);
      if (live !== undefined) await settlesWithin(live.done, ms);
      for (;;) {
        const turn = await getTurn(context, turn_id);
        if (turn.status !== 'running' || performance.now() >= until) return turn;
        await wait(POLL_MS);
      }
    },
    async stop() {
      isStopping = true;
      clearInterval(watching);
      for (const live of lives.values()) live.abort('stopping');
      await Promise.all([...lives.values()].map(({ done }) => done));
      retire(worker_id);
    },
  };
  return chat;
}

/** Streams a turn of this process part by part, or waits for a turn of another process. */
async function* followTurn(
  context: TurnContext,
  lives: ReadonlyMap<string, Live>,
  turn_id: string,
): AsyncGenerator<TurnPart | undefined, void> {
  const live = lives.get(turn_id);
  if (live !== undefined) {
    for (let at = 0; ;) {
      const { changed, hasEnded, parts } = live;
      const part = parts[at];
      if (part !== undefined) {
        at += 1;
        yield part;
      } else if (hasEnded) {
        return;
      } else {
        const isNew = await settlesWithin(changed.promise, KEEP_ALIVE_MS);
        if (!isNew) yield undefined;
      }
    }
  }
  for (;;) {
    const turn = await getTurn(context, turn_id);
    if (turn.status !== 'running') {
      if (turn.answer !== '') yield { event: 'text', data: { text: turn.answer } };
      yield { event: 'turn', data: turn };
      return;
    }
    yield undefined;
  }
}

function tooManyTurns(running: number): ServiceError {
  return new ServiceError('overloaded', `the server is already answering ${running} questions`, {
    remedy: 'Ask again later.',
    retryAfterSeconds: RETRY_SECONDS,
  });
}

function tooManyOfOne(what: string, retryAfterSeconds = RETRY_SECONDS): ServiceError {
  return new ServiceError('rate_limited', what, {
    reason: 'turns',
    remedy: 'Wait for the answers, or cancel questions that you no longer need.',
    retryAfterSeconds,
  });
}

/** @returns whether the work finished in time. */
async function settlesWithin(work: Promise<void>, ms: number): Promise<boolean> {
  const late = new AbortController();
  const timer = wait(ms, false, { signal: late.signal }).catch(() => false);
  try {
    return await Promise.race([work.then(() => true), timer]);
  } finally {
    late.abort();
  }
}

/** Never rejects. */
async function answer(
  context: TurnContext,
  answerer: Answerer,
  turn: BegunTurn,
  { ask: askAsCaller, scopes }: TurnCaller,
  aborting: AbortController,
  emit: (part: TurnPart) => void,
  log: ChatOptions['log'],
): Promise<void> {
  const { signal } = aborting;
  const pieces: string[] = [];
  const tool_calls: ToolUse[] = [];
  const { bot, prompt, history, agent, budget } = turn;
  const isTrading = bot.kind === 'trading';
  const ask = isTrading ? askReadingOnly(askAsCaller, bot.slug) : askAsCaller;
  const tools = (agent?.tools ?? TOOLS).filter(({ scope }) => scopes.has(scope));
  const record = async (
    use: Pick<ToolUse, 'tool' | 'args'>,
    answered: ToolAnswer | ToolRefusal,
  ): Promise<void> => {
    const { tool } = use;
    const source = 'source' in answered ? answered.source : null;
    const error = 'error' in answered ? answered.error.detail : null;
    tool_calls.push({ ...use, source, error });
    await recordToolCall(context, turn, { ...use, source, error }, JSON.stringify(answered));
    emit({ event: 'tool_result', data: { tool, source, error } });
  };
  const question = {
    ask,
    bot,
    prompt,
    history,
    role: agent?.role,
    instructions: agent?.instructions,
    tools,
    budget,
    signal,
    say(text: string) {
      const clean = text.toWellFormed().replaceAll('\0', '');
      pieces.push(clean);
      emit({ event: 'text', data: { text: clean } });
    },
    async call(tool: string, args: unknown) {
      // Another server may have canceled the turn.
      const { status } = await getTurn(context, turn.turn_id);
      if (status !== 'running') aborting.abort('dropped' satisfies AbortReason);
      signal.throwIfAborted();
      const use = { tool, args: argsText(args) };
      emit({ event: 'tool_call', data: use });
      try {
        const isAbandoned = (): boolean => signal.reason !== ('stopping' satisfies AbortReason);
        const known = toolNamed(tool, tools);
        const answered =
          isTrading && known.scope === 'write'
            ? refusal(onlyReads(bot.slug))
            : await callTool(known, ask, bot.bot_id, args, signal, { isAbandoned });
        await record(use, answered);
        return answered;
      } catch (thrown) {
        if (!signal.aborted) {
          log.error({ err: thrown, msg: `tool ${tool} failed in turn ${turn.turn_id}` });
        }
        throw thrown;
      }
    },
    async refuse(tool: string, args: unknown, error: ServiceError) {
      const use = { tool: tool.slice(0, 100), args: argsText(args) };
      emit({ event: 'tool_call', data: use });
      await record(use, refusal(error));
    },
  };
  try {
    let answered: AnswerOutcome;
    try {
      answered = await answerer.answer(question);
    } catch (thrown) {
      if (!signal.aborted && !(thrown instanceof ServiceError)) {
        log.error({ err: thrown, msg: `turn ${turn.turn_id} failed` });
      }
      const failure =
        thrown instanceof ServiceError
          ? thrown
          : new ServiceError(
              'failure',
              `unexpected error; see the server log for turn ${turn.turn_id}`,
            );
      answered = { citations: [], usage: NO_USAGE, stopped_by: null, failure };
    }
    const { status, stopped_by, error } = endOf(answered, signal, pieces.length > 0, budget);
    const { citations, usage } = answered;
    const rest = { citations, tool_calls, usage, stopped_by, error };
    await endTurn(context, turn, status, pieces.join(''), rest);
    emit({ event: 'turn', data: await getTurn(context, turn.turn_id) });
  } catch (thrown) {
    // The next reader of the turn gets it as interrupted.
    log.error({ err: thrown, msg: `the result of turn ${turn.turn_id} could not be stored` });
  }
}

interface End {
  readonly status: Exclude<Turn['status'], 'running'>;
  readonly stopped_by: Turn['stopped_by'];
  readonly error: TurnError | null;
}

function endOf(
  { failure, stopped_by }: AnswerOutcome,
  { aborted, reason }: AbortSignal,
  hasText: boolean,
  { seconds }: Budget,
): End {
  if (aborted && (reason as AbortReason) === 'seconds') {
    const status = hasText ? 'done' : 'failed';
    return { status, stopped_by: 'seconds', error: hasText ? null : tooSlow(seconds) };
  }
  if (aborted && (reason as AbortReason) === 'canceled') {
    return { status: 'failed', stopped_by, error: CANCELED };
  }
  // A `dropped` turn has already ended in the database; `endTurn` leaves its status unchanged.
  if (aborted) return { status: 'interrupted', stopped_by, error: INTERRUPTED };
  if (failure === undefined) return { status: 'done', stopped_by, error: null };
  const { code, message: detail, reason: why, remedy, retryAfterSeconds } = failure;
  return {
    status: 'failed',
    stopped_by,
    error: {
      code,
      detail,
      ...(why !== undefined && { reason: why }),
      ...(remedy !== undefined && { remedy }),
      ...(retryAfterSeconds !== undefined && { retry_after_seconds: retryAfterSeconds }),
    },
  };
}

function tooSlow(seconds: number): TurnError {
  return {
    code: 'chat_failed',
    detail: `no answer within ${seconds} seconds`,
    reason: 'too_slow',
    remedy: 'Ask again in the same session. The provider may have charged for this attempt.',
  };
}
