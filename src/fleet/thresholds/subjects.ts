/** Client, trader and desk for whom a bot trades, and its instruments: the subjects of thresholds. */
import type { BotSpec } from '../../bots/spec.ts';

/** The five levels of Article 15(5) of RTS 6. */
export type Level = 'client' | 'instrument' | 'trader' | 'desk' | 'firm';

/** Subject of thresholds of the level `firm`. */
export const FIRM = 'firm';

/** Plain JSON, stored with a session at its start. */
export interface Subjects {
  /** Account currency. */
  readonly currency: string;
  readonly client: string | null;
  readonly trader: string | null;
  readonly desk: string | null;
  readonly symbols: readonly string[];
}

export function subjectsOf({ spec: { universe, attribution } }: BotSpec): Subjects {
  const { client = null, trader = null, desk = null } = attribution ?? {};
  const { currency, symbols } = universe;
  return { currency, client, trader, desk, symbols };
}

/** Returns JSON text that is equal for equal subjects. */
export function serializeSubjects(spec: BotSpec): string {
  return JSON.stringify(subjectsOf(spec));
}

/** Whether a session trades for the subject of a threshold, or in that instrument. */
export function appliesTo(
  { client, trader, desk, symbols }: Subjects,
  level: Level,
  subject: string,
): boolean {
  if (level === 'firm') return true;
  if (level === 'instrument') return symbols.includes(subject);
  return { client, trader, desk }[level] === subject;
}
