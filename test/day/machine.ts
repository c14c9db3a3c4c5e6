/** The thread of a simulated day: virtual time, and a seeded source for everything that is random. */
import crypto from 'node:crypto';
import { readdirSync, rmSync, type RmOptions } from 'node:fs';
import fs from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { inVirtualTime, type VirtualTime } from '../../src/compliance/conformance/virtual-time.ts';
import { Agenda } from '../../src/compliance/venue/agenda.ts';
import { seededRandom } from '../../src/engine/random.ts';
import { currentProcess, NEVER } from './process.ts';
import { injectSqliteFaults } from './sqlite-faults.ts';

/** A connection over a network. */
export interface Link {
  /** Longest time of one direction, ms. */
  latencyMs: number;
  /** Share of requests that arrive up to `LATE_BY_MS` later. */
  late: number;
  /** Share of requests that do not arrive. */
  lost: number;
  /** Share of requests that take effect and whose answer does not arrive. */
  lostAnswers: number;
  /** While it is cut, nothing arrives. */
  isCut: boolean;
  /** Time after which a request without an answer fails, ms. */
  readonly timeoutMs: number;
  readonly failure: () => Error;
}

export const LATE_BY_MS = 8000;
/** Longest time that a step of a day may take, ms. */
const LONGEST_WORK_MS = 3_600_000;

/** On a Monday, shortly before a bar ends. */
const START = Date.UTC(2026, 0, 5, 9, 0, 40);

/** Life of the code that belongs to no process. */
const WORLD = { isOver: false };

export class Machine {
  readonly time: VirtualTime;
  readonly random: () => number;
  readonly #agenda: Agenda;
  readonly #signal: AbortSignal;

  constructor(time: VirtualTime, agenda: Agenda, random: () => number, signal: AbortSignal) {
    this.time = time;
    this.random = random;
    this.#agenda = agenda;
    this.#signal = signal;
  }

  /** True time, ms since the epoch. */
  get now(): number {
    return this.#agenda.now;
  }

  /** A whole number from 0 to `count` - 1. */
  below(count: number): number {
    return Math.floor(this.random() * count);
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)]!;
  }

  happens(share: number): boolean {
    return this.random() < share;
  }

  /** Runs the task even if the current process has died by then. */
  after(ms: number, task: () => void): void {
    this.#agenda.wake(this.#agenda.now + Math.max(0, Math.round(ms)), task);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }

  /** @throws the reason of the signal */
  async pass(ms: number): Promise<void> {
    await this.time.until(() => this.#signal.aborted, ms);
    this.#signal.throwIfAborted();
  }

  /** Lets time pass until the work is done. @throws what the work throws; the reason of the signal */
  async complete<T>(work: Promise<T>): Promise<T> {
    let isDone = false;
    const settled = work.finally(() => (isDone = true));
    settled.catch(() => {});
    const isInTime = await this.time.until(() => isDone || this.#signal.aborted, LONGEST_WORK_MS);
    this.#signal.throwIfAborted();
    if (!isInTime) throw new Error('it takes too long');
    return settled;
  }

  /** Runs work outside of the current process. */
  outside<T>(work: () => T): T {
    return this.time.live(WORLD, work);
  }

  /** Sends a request of the current process over a link; `work` carries it out at the other end. */
  async send<T>(link: Link, work: () => T | Promise<T>): Promise<T> {
    const sender = currentProcess();
    const late = this.sleep(link.timeoutMs).then(() => () => {
      throw link.failure();
    });
    const answer = await Promise.race([this.#deliver(link, work), late]);
    return sender?.isOver === true ? NEVER : answer();
  }

  /** @returns what the sender gets; never resolves if the request or its answer is lost. */
  async #deliver<T>(link: Link, work: () => T | Promise<T>): Promise<() => T> {
    const isLost = (share: number): boolean => this.happens(share) || link.isCut;
    const lateMs = this.happens(link.late) ? LATE_BY_MS : 0;
    await this.sleep(this.random() * (link.latencyMs + lateMs));
    if (isLost(link.lost)) return NEVER;
    const outcome = await this.outside(() => attempt(work));
    await this.sleep(this.random() * link.latencyMs);
    return isLost(link.lostAnswers) ? NEVER : outcome;
  }
}

async function attempt<T>(work: () => T | Promise<T>): Promise<() => T> {
  try {
    const value = await work();
    return () => value;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

/** Runs `work` on a machine whose time, randomness and databases depend on the seed alone. */
export async function onMachine<T>(
  seed: number,
  signal: AbortSignal,
  work: (machine: Machine) => Promise<T>,
): Promise<T> {
  const agenda = new Agenda(START);
  const random = seededRandom(seed);
  return inVirtualTime(agenda, seededRandom(seed ^ 0x5bd1e995), async (time) => {
    const restoreSources = seedSources(seededRandom(seed ^ 0x2c1b3c6d), agenda);
    const restoreSqlite = injectSqliteFaults();
    try {
      return await work(new Machine(time, agenda, random, signal));
    } finally {
      restoreSqlite();
      restoreSources();
    }
  });
}

/** Replaces all other sources of differences between two runs: ids, secrets, uptime and threads. */
function seedSources(random: () => number, agenda: Agenda): () => void {
  const fill = <A extends NodeJS.ArrayBufferView>(array: A): A => {
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    for (let i = 0; i < bytes.length; i += 1) bytes[i] = Math.floor(random() * 256);
    return array;
  };
  const uuid = (): string => {
    const hex = fill(Buffer.alloc(16)).toString('hex');
    const variant = '89ab'[Number.parseInt(hex[16]!, 16) % 4]!;
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
  };
  const restore = [
    override(crypto, { randomUUID: uuid, randomBytes: (size: number) => fill(Buffer.alloc(size)) }),
    override(globalThis.crypto, { randomUUID: uuid, getRandomValues: fill }),
    override(os, { uptime: () => 3600 + (agenda.now - START) / 1000, hostname: () => 'day' }),
    // Part of the ids of workers.
    override(process, { pid: 1 }),
    override(fs, {
      readdir: async (path: string) => readdirSync(path),
      rm: async (path: string, options: RmOptions) => rmSync(path, options),
    }),
    // Clocks of processes may be wrong.
    override(Date, { now: () => agenda.now + (currentProcess()?.skewMs ?? 0) }),
  ];
  syncBuiltinESMExports();
  return () => {
    for (const one of restore.toReversed()) one();
    syncBuiltinESMExports();
  };
}

/** @returns restores the members. */
export function override(owner: object, members: Readonly<Record<string, unknown>>): () => void {
  const before = Object.keys(members).map(
    (name) => [name, Object.getOwnPropertyDescriptor(owner, name)] as const,
  );
  for (const [name, value] of Object.entries(members)) {
    Object.defineProperty(owner, name, { value, configurable: true, writable: true });
  }
  return () => {
    for (const [name, descriptor] of before) {
      if (descriptor === undefined) Reflect.deleteProperty(owner, name);
      else Object.defineProperty(owner, name, descriptor);
    }
  };
}
