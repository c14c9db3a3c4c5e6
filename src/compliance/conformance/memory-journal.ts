import type { Journal, LoggedEnd } from '../../trading/host/pod/runner-journal.ts';
import { INPUT_KINDS, parseInput, type SessionEvent } from '../../trading/session-events.ts';
import type { SessionState } from '../../events/session-state.ts';
import type { VenueRules } from '../../trading/venue.ts';

export interface MemoryJournal extends Journal {
  /** All events, oldest first. */
  readonly events: readonly SessionEvent[];
  /** Loses all events, like a replaced disk. */
  lose(): void;
}

/** A journal in memory, which outlives the session that writes to it. */
export function memoryJournal(onEvents: (events: readonly SessionEvent[]) => void): MemoryJournal {
  const events: SessionEvent[] = [];
  let state: SessionState | undefined;
  let steps = 0;
  let rules: VenueRules | undefined;
  let end: LoggedEnd | undefined;
  return {
    events,
    lose() {
      events.length = 0;
      state = undefined;
      steps = 0;
    },
    get state() {
      return state;
    },
    get steps() {
      return steps;
    },
    get rules() {
      return rules;
    },
    latches: 0,
    get end() {
      return end;
    },
    async *inputs() {
      for (const { kind, payload } of events.slice()) {
        const known = INPUT_KINDS.find((one) => one === kind);
        // Through JSON, as on disk.
        if (known !== undefined) yield parseInput(known, JSON.stringify(payload));
      }
    },
    append: async (some, after, taken) => {
      events.push(...some);
      onEvents(some);
      state = after;
      steps = taken;
    },
    keepRules: async (known) => {
      rules = known;
    },
    keepEnd: async (known) => {
      end = known;
    },
    // The test reads the log itself.
    nextBatch: async () => undefined,
    close: async () => {},
  };
}
