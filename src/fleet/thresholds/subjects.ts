/** For whom a bot trades, as its spec says: those whose thresholds hold for it. */
import type { BotSpec } from '../../bots/spec.ts';

/** The five levels of Article 15(5) of RTS 6. */
export type Level = 'client' | 'instrument' | 'trader' | 'desk' | 'firm';

/** Of the firm there is one. */
export const FIRM = 'firm';

/** Plain JSON; it is kept with a session from its start on. */
export interface Subjects {
  /** Of its account. */
  readonly currency: string;
  readonly client: string | null;
  readonly trader: string | null;
  readonly desk: string | null;
  readonly symbols: readonly string[];
}

/** As text, equal subjects are equal. */
export function serializeSubjects({ spec: { universe, attribution } }: BotSpec): string {
  const { client = null, trader = null, desk = null } = attribution ?? {};
  const { currency, symbols } = universe;
  return JSON.stringify({ currency, client, trader, desk, symbols } satisfies Subjects);
}

/** Whether a session trades for a subject, or in the instrument that it is. */
export function appliesTo(
  { client, trader, desk, symbols }: Subjects,
  level: Level,
  subject: string,
): boolean {
  if (level === 'firm') return true;
  if (level === 'instrument') return symbols.includes(subject);
  return { client, trader, desk }[level] === subject;
}
