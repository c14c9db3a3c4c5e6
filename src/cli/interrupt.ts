import { ServiceError } from '../base/errors.ts';

/**
 * npm passes on a Ctrl-C that the terminal has already sent to the whole process group, so under
 * `npx` one key press arrives twice. Only what comes later than this is a second one.
 */
const SAME_KEY_PRESS_MS = 300;

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

/**
 * A signal that the first Ctrl-C or SIGTERM aborts, with a `ServiceError('interrupted')` as its
 * reason, so that work can end in good order. The next one kills, as if nobody listened, or does what
 * `onNext` says.
 */
export function abortOnInterrupt(
  message: (text: string) => void,
  onNext?: () => void,
): AbortSignal {
  const controller = new AbortController();
  const stop = (name: NodeJS.Signals): void => {
    if (controller.signal.aborted) return;
    message('stopping; Ctrl-C again to stop at once');
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
