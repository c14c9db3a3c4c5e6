import { runLoop, type LoopOptions, type Tick } from '../../daemon/loop.ts';
import type { Machine } from '../../daemon/machine.ts';
import { createLog } from '../../src/base/log.ts';
import type { Rig } from './rig.ts';

/** A daemon that checks once at its start, and then only when the test causes a check. */
export interface SteppedDaemon {
  /** Ends its wait. */
  look(): Promise<Tick>;
  hangUp(): Promise<Tick>;
  /** Reports a change of the watched files. */
  notice(): Promise<Tick>;
  /** Length of its wait, ms. */
  waits(): number;
  stop(): Promise<void>;
}

export async function startStepped(
  { log }: Pick<Rig, 'log'>,
  machine: Machine,
): Promise<SteppedDaemon> {
  const stop = new AbortController();
  let [call, watched] = [() => {}, () => {}];
  let elapse = (): void => {};
  let waits = 0;
  let ticked = Promise.withResolvers<Tick>();
  let latest: Tick;
  const options: LoopOptions = {
    signal: stop.signal,
    log: createLog((line) => log.push(line), false),
    wake: (look) => {
      call = look;
      return () => (call = () => {});
    },
    watch: (look) => {
      watched = look;
      return () => (watched = () => {});
    },
    onTick: (tick) => (latest = tick),
    wait(ms, alarm) {
      waits = ms;
      const { promise, resolve } = Promise.withResolvers<void>();
      elapse = resolve;
      alarm.addEventListener('abort', () => resolve());
      ticked.resolve(latest);
      return promise;
    },
  };
  const running = runLoop(machine, options);
  const after = async (cause: () => void): Promise<Tick> => {
    ticked = Promise.withResolvers<Tick>();
    cause();
    return ticked.promise;
  };
  await ticked.promise;
  return {
    look: () => after(() => elapse()),
    hangUp: () => after(() => call()),
    notice: () => after(() => watched()),
    waits: () => waits,
    async stop() {
      stop.abort();
      await running;
    },
  };
}
