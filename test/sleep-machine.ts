import { vi } from 'vitest';

/**
 * Moves the wall clock ahead by `ms` but not the clock of the process, as after a suspend.
 * @returns a function that restores the wall clock.
 */
export function sleepMachine(ms: number): () => void {
  const { now } = Date;
  const spy = vi.spyOn(Date, 'now').mockImplementation(() => now.call(Date) + ms);
  return () => spy.mockRestore();
}
