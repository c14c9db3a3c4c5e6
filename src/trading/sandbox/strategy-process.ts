import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { ServiceError } from '../../base/errors.ts';
import { outOfMemory } from '../../base/strategy-memory.ts';
import { MOST_BYTES } from './messages.ts';
import { invalidMessage } from './player.ts';

const LOOK_EVERY_MS = 50;
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

/** A process that runs a strategy, and exchanges messages with it. */
export class StrategyProcess {
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #exited: Promise<unknown>;
  readonly #memoryMb: number;
  readonly #signal: AbortSignal | undefined;
  /** Timer that checks the memory of the process. */
  readonly #memoryTimer: NodeJS.Timeout | undefined;
  readonly #unread: Uint8Array[] = [];
  #waiting: PromiseWithResolvers<Uint8Array> | undefined;
  #ended: ServiceError | undefined;

  /** @param file entry point of the process */
  constructor(memoryMb: number, signal: AbortSignal | undefined, file = PROCESS) {
    this.#memoryMb = memoryMb;
    this.#signal = signal;
    const child = spawn(
      process.execPath,
      [...SANDBOX_FLAGS, `--max-old-space-size=${memoryMb}`, file],
      // Detached, so that Ctrl-C reaches only the server. UTC is the time zone of every strategy.
      { stdio: ['pipe', 'pipe', 'ignore'], env: { TZ: 'UTC' }, cwd: '/', detached: true },
    );
    this.#child = child;
    this.#exited = once(child, 'close').catch(() => {});
    signal?.addEventListener('abort', this.#abort);
    child.on('error', (cause) => {
      this.#end(new ServiceError('failure', 'cannot start a process for the strategy', { cause }));
    });
    child.on('close', (code, how) => {
      // V8 ends a process whose heap is full with one of these.
      const isFull = how === 'SIGABRT' || how === 'SIGTRAP' || code === 134 || code === 133;
      this.#end(
        isFull ? outOfMemory(memoryMb, MEMORY_SETTING) : processEnded(how ?? `code ${code}`),
      );
    });
    // Writing to an ended process fails; the close event reports why it ended.
    child.stdin.on('error', () => {});
    const reader = frameReader();
    child.stdout.on('data', (chunk: Buffer) => this.#take(reader(chunk)));
    if (process.platform === 'linux') {
      this.#memoryTimer = setInterval(() => void this.#checkMemory(), LOOK_EVERY_MS);
    }
  }

  send(message: Uint8Array): void {
    const head = Buffer.allocUnsafe(4);
    head.writeUInt32LE(message.length);
    this.#child.stdin.write(head);
    this.#child.stdin.write(message);
  }

  /** @throws ServiceError if no message arrives in time or the process has ended. */
  async receive(withinMs: number): Promise<Uint8Array> {
    this.#signal?.throwIfAborted();
    const first = this.#unread.shift();
    if (first !== undefined) return first;
    if (this.#ended !== undefined) throw this.#ended;
    this.#waiting = Promise.withResolvers();
    const late = setTimeout(() => this.#end(noAnswer(withinMs)), withinMs);
    try {
      return await this.#waiting.promise;
    } finally {
      clearTimeout(late);
      this.#waiting = undefined;
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#memoryTimer);
    this.#signal?.removeEventListener('abort', this.#abort);
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  #end(error: ServiceError): void {
    this.#ended ??= error;
    this.#child.kill('SIGKILL');
    this.#waiting?.reject(this.#ended);
  }

  readonly #abort = (): void => {
    this.#child.kill('SIGKILL');
    this.#waiting?.reject(this.#signal!.reason as Error);
  };

  /** @param messages undefined if one was too long. */
  #take(messages: readonly Uint8Array[] | undefined): void {
    this.#unread.push(...(messages ?? []));
    const bytes = this.#unread.reduce((sum, { length }) => sum + length, 0);
    if (messages === undefined || this.#unread.length > MOST_UNREAD || bytes > MOST_UNREAD_BYTES) {
      this.#end(invalidMessage('the strategy'));
    } else if (this.#waiting !== undefined && this.#unread.length > 0) {
      this.#waiting.resolve(this.#unread.shift()!);
    }
  }

  /** The heap limit of V8 does not count buffers. */
  async #checkMemory(): Promise<void> {
    // Reading fails if the process has ended or could not be started.
    const status = await readFile(`/proc/${this.#child.pid}/status`, 'utf8').catch(() => '');
    const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(status) ?? [];
    if (Number(kib) > this.#memoryMb * 1024) this.#end(outOfMemory(this.#memoryMb, MEMORY_SETTING));
  }
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
