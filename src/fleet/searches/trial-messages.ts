/** Messages of a trial process. They are validated, because code of a user runs in it. */
import { z } from 'zod';
import { TRIAL_FIGURES, type TrialMetrics } from '../../backtest/search/trial-figures.ts';
import type { Trial, TrialResult } from '../../backtest/search/trial.ts';

const text = z.string().max(4000);

const LoadedMessage = z.union([
  z.strictObject({ loaded: z.literal(true) }),
  /** Why the strategy cannot be loaded. */
  z.strictObject({ refused: text }),
]);

const figures = Object.fromEntries(TRIAL_FIGURES.map((name) => [name, z.number().nullable()]));

const TrialMessage = z.union([
  z.strictObject({ error: text }),
  z.strictObject({
    metrics: z.strictObject(figures),
    /** In base64, doubles; see `TrialFigures`. */
    sums: z.base64().optional(),
  }),
]);

export type LoadedMessage = z.infer<typeof LoadedMessage>;
export type TrialMessage =
  | { readonly error: string }
  | { readonly metrics: TrialMetrics; readonly sums?: string };

/** @returns undefined for an invalid message */
export function readLoaded(bytes: Uint8Array): LoadedMessage | undefined {
  return LoadedMessage.safeParse(jsonOf(bytes)).data;
}

/** @returns undefined for an invalid message */
export function readResult(trial: Trial, bytes: Uint8Array): TrialResult | undefined {
  const message = TrialMessage.safeParse(jsonOf(bytes)).data;
  if (message === undefined) return undefined;
  if ('error' in message) return { ...trial, error: message.error };
  const metrics = message.metrics as TrialMetrics;
  if (message.sums === undefined) return { ...trial, metrics };
  const sums = Uint8Array.from(Buffer.from(message.sums, 'base64'));
  if (sums.length % Float64Array.BYTES_PER_ELEMENT > 0) return undefined;
  return { ...trial, metrics, sums: new Float64Array(sums.buffer) };
}

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    return undefined;
  }
}
