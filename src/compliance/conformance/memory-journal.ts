import type { Journal, LoggedEnd } from '../../trading/host/pod/runner-journal.ts';
import { INPUT_KINDS, parseInput, type SessionEvent } from '../../trading/session-events.ts';
import type { SessionState } from '../../events/session-state.ts';
import type { VenueRules } from '../../trading/venue.ts';

export interface MemoryJournal extends Journal {
  /** All that was appended, oldest first. */
  readonly events: readonly SessionEvent[];
  /** As though its disk were another one. */
  lose(): void;
}

/** The log of a runner, as `openJournal` keeps it, without a disk; it outlives who writes to it. */
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
        // By way of JSON, as on disk.
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
    // Whoever looks after a bot that is tried reads the log itself.
    nextBatch: async () => undefined,
    close: async () => {},
  };
}
