import { expect, it, test } from 'vitest';
import { mayPlace } from '../../src/trading/trading-permission.ts';
import {
  describe,
  EVENTS,
  happen,
  isImpossible,
  SITUATIONS,
  type EventName,
} from './session-lives.ts';

type Outcomes = Partial<Record<EventName, string>>;

/** Outcomes that do not depend on whether there is a session. */
const ANYWHERE: Outcomes = {
  'answer trade': 'supervision_received',
  fenced: 'claim fenced',
};

/** Before the session is restored, there is nothing to halt. */
const RESTORING: Outcomes = {
  ...ANYWHERE,
  'answer halt': 'supervision_received, ending_began halted for good',
  'answer stop': 'supervision_received, ending_began stopped for good',
  disowned: 'claim gone, ending_began stopped for good',
  'server failed': 'ending_began failed for good',
  'log lost': 'journal_lost, ending_began failed for good',
  restored: 'restoration_adopted, enter reconciling',
  stop: 'ending_began stopped',
  'final stop': 'ending_began stopped for good',
  'write failed': 'journal_broken, ending_began failed for good',
  failed: 'ending_began failed for good',
};

const RUNNING: Outcomes = {
  ...ANYWHERE,
  'answer halt': 'supervision_received, ending_began halted for good, control.halted',
  'answer stop': 'supervision_received, ending_began stopped for good, control.halted',
  disowned: 'claim gone, ending_began stopped for good, control.halted',
  'server failed': 'ending_began failed for good, control.halted',
  'log lost': 'journal_lost, ending_began failed for good, control.halted',
  'holdings match': 'holdings_checked, compare to routine',
  'holdings missing': 'holdings_checked, compare to confirm',
  'holdings unknown': 'holdings_checked, compare to confirm',
  'foreign order': 'superseded',
  stop: 'ending_began stopped',
  'final stop': 'ending_began stopped for good, control.halted',
  'write failed': 'journal_broken, ending_began failed for good',
  failed: 'ending_began failed for good, control.halted',
};

const TRADING: Outcomes = {
  ...RUNNING,
  'feed ended': 'ending_began finished',
  'stale bars': 'staleness_changed, deny stale_data',
  interrupted: 'journal_broken, ending_began stopped',
};

/** An end that another process may resume can become final. */
const STOPPING: Outcomes = {
  ...RUNNING,
  'answer halt': 'supervision_received, ending_changed halted for good, control.halted',
  'answer stop': 'supervision_received, ending_changed stopped for good, control.halted',
  disowned: 'claim gone, ending_changed stopped for good, control.halted',
  'server failed': 'ending_changed failed for good, control.halted',
  'log lost': 'journal_lost, ending_changed failed for good, control.halted',
  stop: 'ignored',
  'final stop': 'ending_changed stopped for good, control.halted',
  'write failed': 'journal_broken, ending_changed failed for good',
  failed: 'ending_changed failed for good, control.halted',
  'orders canceled': 'ended',
  'orders open': 'ended unverified',
};

const ENDED_FOR_GOOD: Outcomes = {
  ...ANYWHERE,
  'answer halt': 'supervision_received',
  'answer stop': 'supervision_received',
  disowned: 'claim gone',
  'server failed': 'ending_changed failed for good',
  'log lost': 'journal_lost, ending_changed failed for good',
  'write failed': 'journal_broken, ending_changed failed for good',
  'orders canceled': 'ended',
  'orders open': 'ended unverified',
};

/** The first error is the one to report. */
const FAILED: Outcomes = {
  'server failed': 'ignored',
  'log lost': 'journal_lost',
  'write failed': 'journal_broken',
};

const HALTING: Outcomes = {
  ...ENDED_FOR_GOOD,
  'holdings match': 'holdings_checked, compare to routine',
  'holdings missing': 'holdings_checked, compare to confirm',
  'holdings unknown': 'holdings_checked, compare to confirm',
  'foreign order': 'superseded',
};

/** Outcomes by situation; events that are missing are ignored. */
const EXPECTED: Readonly<Record<string, Outcomes>> = {
  new: {
    ...RESTORING,
    claimed: 'claim settled',
    'answer trade': 'supervision_received, claim settled',
    'answer halt': 'supervision_received, claim settled, ending_began halted for good',
    'answer stop': 'supervision_received, claim settled, ending_began stopped for good',
    'server failed': 'claim settled, ending_began failed for good',
    'log lost': 'journal_lost, claim settled, ending_began failed for good',
  },
  restoring: RESTORING,
  reconciling: {
    ...RUNNING,
    'holdings match': 'holdings_checked, compare to routine, enter connecting',
    'holdings missing':
      'holdings_checked, mismatches_changed, compare to confirm, enter connecting',
    'holdings unknown': 'holdings_checked, compare to confirm, enter connecting',
  },
  connecting: { ...RUNNING, 'feed connected': 'enter trading' },
  trading: TRADING,
  stale: {
    ...TRADING,
    'fresh bars': 'staleness_changed, deny nothing',
    'stale bars': 'ignored',
  },
  suspecting: {
    ...TRADING,
    'holdings missing': 'holdings_checked, mismatches_changed, latched, compare to recheck',
  },
  latched: {
    ...TRADING,
    'holdings match': 'holdings_checked, mismatches_changed, compare to routine',
    'holdings missing': 'holdings_checked, compare to recheck',
    'stale bars': 'staleness_changed',
  },
  superseded: { ...TRADING, 'foreign order': 'ignored', 'stale bars': 'staleness_changed' },
  finishing: STOPPING,
  stopping: STOPPING,
  halting: HALTING,
  failing: { ...HALTING, ...FAILED },
  broken: { ...HALTING, ...FAILED, 'orders canceled': 'ended unverified' },
  'halting early': { ...ENDED_FOR_GOOD, restored: 'restoration_adopted, control.halted' },
  'stopping early': {
    ...RESTORING,
    'answer halt': 'supervision_received, ending_changed halted for good',
    'answer stop': 'supervision_received, ending_changed stopped for good',
    disowned: 'claim gone, ending_changed stopped for good',
    'server failed': 'ending_changed failed for good',
    'log lost': 'journal_lost, ending_changed failed for good',
    restored: 'restoration_adopted',
    stop: 'ignored',
    'final stop': 'ending_changed stopped for good',
    'write failed': 'journal_broken, ending_changed failed for good',
    failed: 'ending_changed failed for good',
    'orders canceled': 'ended',
    'orders open': 'ended unverified',
  },
  lost: { ...ENDED_FOR_GOOD, ...FAILED },
  gone: HALTING,
  fenced: {},
  ended: {},
};

const names = Object.keys(EVENTS) as EventName[];

test('the table has a row for each situation', () => {
  expect(Object.keys(EXPECTED)).toEqual(Object.keys(SITUATIONS));
});

it.each(Object.keys(SITUATIONS))('while %s, each event has the outcome of the table', (name) => {
  const situation = SITUATIONS[name]!;
  const possible = names.filter((event) => !isImpossible(situation, event));
  const outcomes = possible.map((event) => [event, describe(happen(situation, event).decisions)]);
  const expected = possible.map((event) => [event, EXPECTED[name]![event] ?? 'ignored']);
  expect(Object.fromEntries(outcomes)).toEqual(Object.fromEntries(expected));
});

const pairs = Object.entries(SITUATIONS).flatMap(([name, situation]) =>
  names
    .filter((event) => !isImpossible(situation, event))
    .map((event) => ({ name, event, situation, ...happen(situation, event) })),
);

test('only a session that trades, with its claim and without an end, may place orders', () => {
  const allowed = Object.entries(SITUATIONS).flatMap(([name, { life, facts }]) =>
    mayPlace(life, facts) ? [name] : [],
  );
  expect(allowed).toEqual(['connecting', 'trading', 'suspecting']);
});

test('after any halt, stop or failure no event allows orders again', () => {
  const ended = pairs.filter(({ after }) => after.life.ending !== undefined);
  expect(ended.length).toBeGreaterThan(100);
  for (const { after } of ended) {
    for (const event of names) {
      const next = happen(after, event).after;
      expect(next.life.ending).toBeDefined();
      expect(mayPlace(next.life, next.facts)).toBe(false);
    }
  }
});

test('an end that is final stays as it is unless its record is lost, and halts the session unless the journal is broken', () => {
  const final = pairs.filter(({ after }) => after.life.ending?.isFinal === true);
  expect(final.length).toBeGreaterThan(100);
  for (const { name, event, after } of final) {
    const { session } = after.facts;
    const isHalted = session === undefined || session.status === 'halted';
    expect([name, event, isHalted || after.life.isBroken]).toEqual([name, event, true]);
  }
  const losses: readonly EventName[] = ['server failed', 'log lost', 'write failed'];
  for (const { situation, event, after } of pairs) {
    const { ending } = situation.life;
    if (ending?.isFinal !== true) continue;
    if (after.life.ending !== ending) {
      expect(losses).toContain(event);
      expect([ending.outcome, after.life.ending?.outcome]).not.toEqual(['failed', 'failed']);
      expect(after.life.ending).toMatchObject({ outcome: 'failed', isFinal: true });
    }
  }
});

test('a fenced or ended session decides nothing', () => {
  for (const name of ['fenced', 'ended']) {
    for (const event of names) expect(happen(SITUATIONS[name]!, event).decisions).toEqual([]);
  }
});
