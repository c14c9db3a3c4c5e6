/**
 * Runs uploaded strategies, each in a process of its own that can only read bars and return orders.
 * The server repeats these orders in an engine that the process cannot reach. So the strategy
 * decides when to order what, and nothing else in a result.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { serialize } from 'node:v8';
import type { Signals } from '../../engine/model-signals.ts';
import type { Step } from '../../engine/steps.ts';
import type { Strategy } from '../../engine/strategy.ts';
import { ServiceError } from '../../base/errors.ts';
import { outOfMemory } from '../../base/strategy-memory.ts';
import { MOST_BYTES, readFirst, type Setup } from './messages.ts';
import { createPlayer, invalidMessage } from './player.ts';
import { encodeSteps } from './step-codec.ts';

export interface SandboxOptions extends Omit<Setup, 'signals'> {
  /** Signals of models. Their steps must be computed before `take` is called. */
  readonly signals?: Signals | undefined;
  /** Memory of the process, MB. Linux counts memory outside the JavaScript heap, too. */
  readonly memoryMb: number;
  /** Kills the process and rejects pending calls. */
  readonly signal?: AbortSignal | undefined;
}

export interface Sandbox {
  /** Repeats the orders of the process. For one run, over exactly the steps passed to `take`. */
  readonly strategy: Strategy;
  /**
   * Sends the next steps to the process, oldest first, before the run takes them. Does not throw if
   * the process fails: the strategy then throws a `ServiceError` at the failed step.
   */
  readonly take: (steps: readonly Step[]) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Time for Node to start, in addition to the time limit of the strategy. */
const START_MS = 10_000;
/**
 * The process checks the time limit itself and reports the failure in more detail, so wait longer.
 */
const LATE_MS = 1000;
const LOOK_EVERY_MS = 50;
/** Steps per message to the process. */
const STEPS_AT_ONCE = 512;
/** Limits on unread messages. A valid process sends little more than was requested. */
const MOST_UNREAD = 1000;
const MOST_UNREAD_BYTES = 8 * MOST_BYTES;

const CODE = fileURLToPath(new URL('../..', import.meta.url));
const PROCESS = fileURLToPath(new URL(`./process${import.meta.url.slice(-3)}`, import.meta.url));

/**
 * Node flags for the sandbox process: no file system, network or child processes even if a module
 * leaks.
 */
export const SANDBOX_FLAGS: readonly string[] = [
  // No network, child process, thread or addon; only the code of this package can be read.
  '--permission',
  `--allow-fs-read=${CODE}*`,
  // node:sqlite ignores the permission model.
  '--no-experimental-sqlite',
  '--disallow-code-generation-from-strings',
  '--no-warnings',
];

/**
 * Starts a process that loads a strategy.
 *
 * @throws ServiceError `invalid_strategy`, `strategy_failed`, `strategy_timeout`; the reason of
 *   `signal`.
 */
export async function openSandbox(options: SandboxOptions): Promise<Sandbox> {
  const { memoryMb, signal, signals, ...setup } = options;
  const { symbols } = setup;
  const sentBars = new Uint32Array(symbols.length);
  const timeoutMs = Math.ceil(setup.timeoutMs);
  signal?.throwIfAborted();
  const channel = startProcess(memoryMb, signal);
  const { send, receive, close } = channel;
  try {
    send(serialize({ ...setup, timeoutMs, signals: signals?.names ?? [] } satisfies Setup));
    const answer = readFirst(await receive(START_MS + timeoutMs));
    if (answer === undefined) throw invalidMessage(setup.entry);
    if ('refused' in answer) {
      const { code, message, remedy } = answer.refused;
      throw new ServiceError(code, message, { remedy });
    }
    const { loaded } = answer;
    const player = createPlayer(loaded.name);
    return {
      strategy: {
        name: loaded.name,
        description: loaded.description,
        params: loaded.params,
        ...(loaded.instruments && { instruments: { max: Infinity, ...loaded.instruments } }),
        ...(loaded.signals && { signals: loaded.signals }),
        ...(loaded.shorts !== undefined && { shorts: loaded.shorts }),
        check: () => loaded.check,
        create: (context) => player.create(context),
      },
      async take(steps) {
        for (let at = 0; at < steps.length && !player.hasFailed; at += STEPS_AT_ONCE) {
          const some = steps.slice(at, at + STEPS_AT_ONCE);
          const until = player.done + some.length;
          try {
            send(encodeSteps(symbols, some, signals, sentBars));
            while (player.done < until && !player.hasFailed) {
              player.add(await receive(timeoutMs + LATE_MS), until);
            }
          } catch (error) {
            if (signal?.aborted || !(error instanceof ServiceError)) throw error;
            player.fail(error);
          }
        }
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

interface Channel {
  readonly send: (message: Uint8Array) => void;
  /** @throws ServiceError if no message arrives in time or the process has ended. */
  readonly receive: (withinMs: number) => Promise<Uint8Array>;
  readonly close: () => Promise<void>;
}

function startProcess(memoryMb: number, signal: AbortSignal | undefined): Channel {
  const child = spawn(
    process.execPath,
    [...SANDBOX_FLAGS, `--max-old-space-size=${memoryMb}`, PROCESS],
    // Detached, so that Ctrl-C reaches only the server. UTC is the time zone of every strategy.
    { stdio: ['pipe', 'pipe', 'ignore'], env: { TZ: 'UTC' }, cwd: '/', detached: true },
  );
  const exited = once(child, 'close').catch(() => {});
  const messages: Uint8Array[] = [];
  let waiting: PromiseWithResolvers<Uint8Array> | undefined;
  let ended: ServiceError | undefined;
  const end = (error: ServiceError): void => {
    ended ??= error;
    child.kill('SIGKILL');
    waiting?.reject(ended);
  };
  const abort = (): void => {
    child.kill('SIGKILL');
    waiting?.reject(signal!.reason as Error);
  };
  signal?.addEventListener('abort', abort);
  child.on('error', (cause) => {
    end(new ServiceError('failure', 'cannot start a process for the strategy', { cause }));
  });
  child.on('close', (code, how) => {
    // V8 ends a process whose heap is full with one of these.
    const isFull = how === 'SIGABRT' || how === 'SIGTRAP' || code === 134 || code === 133;
    end(isFull ? outOfMemory(memoryMb, MEMORY_SETTING) : processEnded(how ?? `code ${code}`));
  });
  // Writing to an ended process fails; the close event reports why it ended.
  child.stdin.on('error', () => {});

  const reader = frameReader();
  child.stdout.on('data', (chunk: Buffer) => {
    const frames = reader(chunk);
    if (frames === undefined) return end(invalidMessage('the strategy'));
    messages.push(...frames);
    const unread = messages.reduce((sum, { length }) => sum + length, 0);
    if (messages.length > MOST_UNREAD || unread > MOST_UNREAD_BYTES)
      end(invalidMessage('the strategy'));
    else if (waiting !== undefined && messages.length > 0) waiting.resolve(messages.shift()!);
  });
  const looking = watchMemory(child.pid, memoryMb, () =>
    end(outOfMemory(memoryMb, MEMORY_SETTING)),
  );
  return {
    send(message) {
      const head = Buffer.allocUnsafe(4);
      head.writeUInt32LE(message.length);
      child.stdin.write(head);
      child.stdin.write(message);
    },
    async receive(withinMs) {
      signal?.throwIfAborted();
      const first = messages.shift();
      if (first !== undefined) return first;
      if (ended !== undefined) throw ended;
      waiting = Promise.withResolvers();
      const late = setTimeout(() => end(noAnswer(withinMs)), withinMs);
      try {
        return await waiting.promise;
      } finally {
        clearTimeout(late);
        waiting = undefined;
      }
    },
    async close() {
      clearInterval(looking);
      signal?.removeEventListener('abort', abort);
      child.kill('SIGKILL');
      await exited;
    },
  };
}

/** @returns the messages that a chunk completes; undefined if one is too long. */
export function frameReader(): (chunk: Buffer) => Buffer[] | undefined {
  let rest: Buffer[] = [];
  let size = 0;
  let wanted = 4;
  return (chunk) => {
    rest.push(chunk);
    size += chunk.length;
    const frames: Buffer[] = [];
    while (size >= wanted) {
      const all = Buffer.concat(rest);
      const length = all.readUInt32LE();
      if (length > MOST_BYTES) return undefined;
      wanted = 4 + length;
      if (size >= wanted) {
        frames.push(all.subarray(4, wanted));
        size -= wanted;
        rest = [all.subarray(wanted)];
        wanted = 4;
      } else rest = [all];
    }
    return frames;
  };
}

/** Adds to the heap limit of V8, which does not count buffers. */
function watchMemory(
  pid: number | undefined,
  memoryMb: number,
  onFull: () => void,
): NodeJS.Timeout | undefined {
  if (process.platform !== 'linux' || pid === undefined) return undefined;
  const look = async (): Promise<void> => {
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => ''); // The process has ended.
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(status) ?? [];
    if (Number(kib) > memoryMb * 1024) onFull();
  };
  return setInterval(() => void look(), LOOK_EVERY_MS);
}

function noAnswer(withinMs: number): ServiceError {
  return new ServiceError('strategy_timeout', `the strategy did not answer within ${withinMs} ms`, {
    remedy: 'Look for an endless loop.',
  });
}

const MEMORY_SETTING =
  'custom_code_memory_mb on the server, or --strategy-memory for a sealed backtest';

function processEnded(how: string): ServiceError {
  return new ServiceError('strategy_failed', `the process of the strategy ended: ${how}`, {
    reason: 'process_ended',
    remedy: 'Correct the strategy; it must not end its own process.',
  });
}
