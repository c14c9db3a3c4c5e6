import { vi } from 'vitest';

/**
 * Makes the calendar jump ahead by `ms` while the clock of the process stands still, as after a suspend.
 * @returns what takes that back.
 */
export function sleepMachine(ms: number): () => void {
  const { now } = Date;
  const spy = vi.spyOn(Date, 'now').mockImplementation(() => now.call(Date) + ms);
  return () => spy.mockRestore();
}
