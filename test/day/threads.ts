/** Threads of simulated processes. Their code runs in the thread of the test, on virtual time. */
import { EventEmitter } from 'node:events';
import { syncBuiltinESMExports } from 'node:module';
import workerThreads, { type MessagePort } from 'node:worker_threads';
import { currentLife, type Life } from '../../src/compliance/conformance/virtual-time.ts';
import { serveSessions } from '../../src/trading/host/threads/session-thread.ts';
import type { PaperDone } from '../../src/fleet/tasks/paper-result.ts';
import { override, type Machine } from './machine.ts';

/** A session of the day writes no files. */
const RESULT = {
  summary: { window: null, gates: [], hashes: {}, account: {}, returns: {}, risk: {}, trades: {} },
  notes: [],
  files: [],
} as unknown as PaperDone;

export class SimulatedThreads {
  readonly #machine: Machine;
  /** Functions that end the threads. */
  readonly #running = new Map<Life, () => void>();

  constructor(machine: Machine) {
    this.#machine = machine;
  }

  /** Replaces `Worker` and `MessageChannel` until the returned function is called. */
  install(): () => void {
    const start = (): SimulatedPort => this.#start();
    const connect = (): readonly SimulatedPort[] => this.#connect();
    const restore = override(workerThreads, {
      Worker: function Worker() {
        return start();
      },
      MessageChannel: function MessageChannel() {
        const [port1, port2] = connect();
        return { port1, port2 };
      },
      MessagePort: SimulatedPort,
    });
    syncBuiltinESMExports();
    return () => {
      restore();
      syncBuiltinESMExports();
    };
  }

  /** Ends a thread, whose process continues. */
  killOne(): void {
    const running = [...this.#running].filter(([life]) => !life.isOver);
    if (running.length > 0) this.#machine.pick(running)[1]();
  }

  #start(): SimulatedPort {
    const [outer, inner] = this.#connect();
    const owner = currentLife()!;
    let hasEnded = false;
    const life: Life = {
      get isOver() {
        return hasEnded || owner.isOver;
      },
    };
    const terminate = async (): Promise<void> => {
      if (hasEnded) return;
      hasEnded = true;
      outer.emit('exit', 1);
    };
    this.#running.set(life, () => void this.#machine.time.live(owner, terminate));
    this.#machine.time.live(life, () =>
      serveSessions(inner as unknown as MessagePort, async (_work, { isStopped: stopped }) => ({
        ...RESULT,
        stopped,
      })),
    );
    return Object.assign(outer, { terminate });
  }

  #connect(): readonly [SimulatedPort, SimulatedPort] {
    const ends = [new SimulatedPort(this.#machine), new SimulatedPort(this.#machine)] as const;
    ends[0].peer = ends[1];
    ends[1].peer = ends[0];
    return ends;
  }
}

/** One end of a channel. Its messages arrive in the order in which they were sent. */
class SimulatedPort extends EventEmitter {
  readonly #machine: Machine;
  peer: SimulatedPort | undefined;

  constructor(machine: Machine) {
    super();
    this.#machine = machine;
  }

  postMessage(message: unknown): void {
    const { peer } = this;
    this.#machine.after(0, () => peer?.emit('message', message));
  }

  close(): void {
    const { peer } = this;
    this.peer = undefined;
    this.#machine.after(0, () => {
      this.emit('close');
      peer?.emit('close');
    });
  }

  override on(event: string, listener: (argument: unknown) => void): this {
    const life = currentLife();
    return super.on(event, (argument) => {
      if (life?.isOver !== true) this.#machine.time.live(life!, () => listener(argument));
    });
  }
}
