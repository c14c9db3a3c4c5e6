import type { Log } from '../base/log.ts';
import { printable } from '../base/printable.ts';
import { abortOnInterrupt } from './interrupt.ts';
import type { Io } from './verb.ts';

/**
 * Runs a service until Ctrl-C or SIGTERM, and stops it gracefully. Logs to stderr even with
 * `--quiet`, because nothing else shows that the service is ready.
 */
export async function runUntilStopped<T extends { readonly stop: () => Promise<void> }>(
  io: Pick<Io, 'stderr'>,
  logJson: boolean,
  start: (log: Log) => Promise<T>,
): Promise<T> {
  const { createLog } = await import('../base/log.ts');
  const log = createLog((line) => io.stderr.write(`${printable(line)}\n`), logJson);
  const signal = abortOnInterrupt((text) => log.info(text));
  const started = await start(log);
  await new Promise<void>((resolve) => {
    signal.addEventListener('abort', () => resolve(), { once: true });
    if (signal.aborted) resolve();
  });
  await started.stop();
  log.info('stopped');
  return started;
}
