/** Runs some work and waits for it until `signal` aborts. @throws the reason of the abort */
export async function untilAborted<T>(
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal!.reason as Error);
  signal?.addEventListener('abort', abort);
  try {
    return await Promise.race([work(), aborted.promise]);
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}
