import { ServiceError } from '../base/errors.ts';

/**
 * Signals within this time count as one key press: npm forwards a Ctrl-C that the terminal has
 * already sent to the whole process group, so it arrives twice under `npx`.
 */
const SAME_KEY_PRESS_MS = 300;

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * Returns a signal that the first Ctrl-C or SIGTERM aborts, with a `ServiceError('interrupted')` as
 * reason, so that work can stop gracefully. The next one calls `onNext` or, without it, kills the
 * process.
 */
export function abortOnInterrupt(
  message: (text: string) => void,
  onNext?: () => void,
): AbortSignal {
  const controller = new AbortController();
  const stop = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) return;
    message('stopping; press Ctrl-C again to stop immediately');
    controller.abort(new ServiceError('interrupted', `interrupted by ${name}`));
    setTimeout(() => {
      for (const signal of SIGNALS) {
        process.off(signal, stop);
        if (onNext !== undefined) process.on(signal, onNext);
      }
    }, SAME_KEY_PRESS_MS).unref();
  };
  for (const signal of SIGNALS) process.on(signal, stop);
  return controller.signal;
}
