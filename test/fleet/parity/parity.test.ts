import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { firstDifferentEvent } from '../../../src/fleet/parity/differences.ts';
import {
  explainDifference,
  untilEnd,
  type ParitySides,
} from '../../../src/fleet/parity/explain-difference.ts';
import type { RecordedRun } from '../../../src/fleet/parity/recording.ts';
import { hashOfLines } from '../../../src/fleet/parity/rerun.ts';
import { barsFromRows, sliceBars, type Bars } from '../../../src/market/bars.ts';

const DAY = 86_400_000;

/** At the times of these days. */
function barsOn(days: readonly number[], close = 10): Bars {
  return barsFromRows(days.map((day) => [day * DAY, 10, 12, 8, close, 100] as const));
}

const on = (symbol: string, bars: Bars) => ({ symbol, bars });

const timeOf = (day: number): string => new Date(day * DAY).toISOString();

function event(seq: number, day: number, more: object = {}): string {
  return JSON.stringify({ seq, time: timeOf(day), kind: 'order.submitted', order: seq, ...more });
}

const LINES = [event(1, 1), event(2, 2, { kind: 'order.filled', price: 10 })];

interface Change extends Partial<Omit<ParitySides, 'recorded' | 'backtest'>> {
  readonly recorded?: Partial<RecordedRun>;
  readonly orders?: readonly string[];
  readonly lines?: readonly string[];
  readonly failure?: string;
}

/** Explains the difference between a session over three days and its backtest, which are equal by default. */
function find({ recorded, orders = LINES, lines = LINES, failure, ...sides }: Change = {}) {
  return explainDifference({
    recorded: {
      instruments: [on('A', barsOn([1, 2, 3]))],
      orders: orders.map((line, at) => ({ seq: 10 + at, line })),
      gaps: [],
      supervision: [],
      engines: new Set(['1']),
      status: 'running',
      end: 'success',
      fault: undefined,
      ...recorded,
    },
    instruments: [on('A', barsOn([1, 2, 3]))],
    others: [],
    backtest: { lines, events_hash: hashOfLines(lines), failure },
    ...sides,
  });
}

describe('a session and its backtest', () => {
  it('a comparison finds no difference between equal bars and events', () => {
    expect(find()).toEqual({ bars: 3, events: 2, first_difference: null });
    const none = { instruments: [on('A', barsOn([]))], end: undefined };
    const nothing = { recorded: none, orders: [], lines: [] };
    expect(find(nothing)).toEqual({ bars: 0, events: 0, first_difference: null });
    expect(hashOfLines(LINES)).toBe(
      createHash('sha256')
        .update(`${LINES.join('\n')}\n`)
        .digest('hex'),
    );
  });

  it('a comparison reports a different bar even if it caused no event', () => {
    const bars = barsOn([1, 2, 3]);
    bars.close[2] = 11;
    expect(find({ instruments: [on('A', bars)] })).toEqual({
      bars: 2,
      events: 2,
      first_difference: {
        cause: 'data',
        time: timeOf(3),
        detail: 'the bar of A differs: close 10 in the session, 11 in the catalogue',
        seq: null,
        recorded: {
          time: timeOf(3),
          symbol: 'A',
          open: 10,
          high: 12,
          low: 8,
          close: 10,
          volume: 100,
        },
        backtest: {
          time: timeOf(3),
          symbol: 'A',
          open: 10,
          high: 12,
          low: 8,
          close: 11,
          volume: 100,
        },
      },
    });
  });

  it('a comparison reports a different bar before a different event at the same time', () => {
    const bars = barsOn([1, 2, 3]);
    bars.volume[1] = 5;
    const {
      bars: count,
      events,
      first_difference,
    } = find({
      instruments: [on('A', bars)],
      lines: [LINES[0]!, event(2, 2)],
    });
    expect([count, events, first_difference]).toEqual([
      1,
      1,
      expect.objectContaining({ cause: 'data' }),
    ]);
  });

  it('a comparison reports a bar that one side lacks', () => {
    const missed = { instruments: [on('A', barsOn([1, 3]))] };
    expect(find({ recorded: missed, lines: LINES, orders: LINES.slice(0, 1) })).toMatchObject({
      bars: 1,
      events: 1,
      first_difference: {
        cause: 'gap',
        time: timeOf(2),
        detail: 'the session received no bar of A at this time',
        recorded: null,
        backtest: { close: 10 },
      },
    });
    const gaps = [{ symbol: 'A', after: timeOf(1), before: timeOf(3), missing: 1 }];
    expect(find({ recorded: { ...missed, gaps } }).first_difference!.detail).toBe(
      'the session received no bar of A at this time and recorded data.gap',
    );
    expect(find({ instruments: [on('A', barsOn([1, 3]))] })).toMatchObject({
      first_difference: { cause: 'gap', time: timeOf(2), recorded: { close: 10 }, backtest: null },
    });
    const added = [on('A', barsOn([1, 2, 3, 4]))];
    expect(find({ instruments: added }).first_difference).toMatchObject({
      cause: 'gap',
      time: timeOf(4),
    });
  });

  it('a comparison reports the earliest different bar of all instruments', () => {
    const recorded = { instruments: [on('A', barsOn([1, 3])), on('B', barsOn([1, 2], 9))] };
    const instruments = [on('A', barsOn([1, 3], 9)), on('B', barsOn([1, 2, 3]))];
    const sides = { recorded, instruments };
    expect(find(sides).first_difference).toMatchObject({
      time: timeOf(1),
      recorded: { symbol: 'A' },
    });
    const same = { recorded, instruments: [recorded.instruments[0]!, instruments[1]!] };
    expect(find(same).first_difference).toMatchObject({
      time: timeOf(1),
      recorded: { symbol: 'B' },
    });
  });

  it.each([
    ['version', 'the backtest uses another version than the session'],
    ['params', 'the backtest uses other parameters than the session'],
    ['engine', 'the session ran on another version of the engine'],
  ] as const)('a comparison reports another %s as the cause of a difference', (other, detail) => {
    const lines = [LINES[0]!, event(2, 2, { kind: 'order.filled', price: 11 })];
    expect(find({ others: [other], lines }).first_difference).toMatchObject({
      cause: other,
      detail,
    });
    expect(find({ others: [other] }).first_difference).toBeNull();
  });

  it('a comparison reports a different fill or order over equal bars', () => {
    const lines = [LINES[0]!, event(2, 2, { kind: 'order.filled', price: 11 })];
    expect(find({ lines })).toMatchObject({
      bars: 1,
      events: 1,
      first_difference: {
        cause: 'fill',
        time: timeOf(2),
        seq: 11,
        recorded: { price: 10 },
        backtest: { price: 11 },
      },
    });
    expect(find({ lines: [...LINES, event(3, 3)] }).first_difference).toMatchObject({
      cause: 'order',
      seq: null,
      recorded: null,
      backtest: { seq: 3 },
    });
  });

  it.each(['halt', 'stop', 'failure'] as const)(
    'a comparison reports the end of the session by a %s',
    (end) => {
      const longer = [on('A', barsOn([1, 2, 3, 4]))];
      expect(find({ recorded: { end }, instruments: longer }).first_difference).toMatchObject({
        cause: end,
        time: timeOf(4),
        recorded: null,
        backtest: { symbol: 'A' },
      });
      const canceled = event(3, 3, { kind: 'order.canceled', reason: 'halted' });
      const orders = [...LINES, canceled];
      expect(
        find({ recorded: { end }, orders, instruments: longer }).first_difference,
      ).toMatchObject({
        cause: end,
        time: timeOf(3),
        seq: 12,
        recorded: { kind: 'order.canceled' },
        backtest: null,
      });
      // It was over anyway.
      expect(find({ recorded: { end } }).first_difference).toBeNull();
    },
  );

  it('a comparison reports a strategy failure on one side', () => {
    expect(find({ lines: LINES.slice(0, 1), failure: 'it threw' }).first_difference).toMatchObject({
      cause: 'failure',
      detail: 'the backtest failed: it threw',
    });
    const failed = {
      recorded: { status: 'failed', end: 'failure' },
      orders: LINES.slice(0, 1),
    } as const;
    expect(find(failed).first_difference).toMatchObject({
      cause: 'failure',
      detail: 'the strategy failed in the session',
    });
  });

  it('a comparison reports a failure on one side although neither has events', () => {
    const failed = { status: 'failed', end: 'failure' } as const;
    expect(find({ recorded: failed }).first_difference).toMatchObject({
      cause: 'failure',
      time: timeOf(3),
      detail: 'the strategy failed in the session',
    });
    const detail = 'the backtest failed: it threw';
    const failure = 'it threw';
    expect(find({ failure }).first_difference).toMatchObject({ cause: 'failure', detail });
    expect(find({ failure, others: ['params'] }).first_difference).toMatchObject({
      cause: 'params',
      detail: `the backtest uses other parameters than the session, and ${detail}`,
    });
    const longer = [on('A', barsOn([1, 2, 3, 4]))];
    expect(find({ recorded: failed, failure, instruments: longer }).first_difference).toBeNull();
  });

  it('a comparison reports a halt even if the settings of the backtest differ', () => {
    const canceled = event(3, 3, { kind: 'order.canceled', reason: 'halted' });
    const sides = { recorded: { end: 'halt' }, orders: [...LINES, canceled] } as const;
    expect(find({ ...sides, others: ['version'] }).first_difference).toMatchObject({
      cause: 'halt',
      detail: 'the bot was halted, and its orders were canceled',
    });
  });

  it('an active session is compared up to its last bar', () => {
    const longer = on('A', barsOn([1, 2, 3, 4, 5]));
    expect(
      find({ recorded: { end: undefined }, instruments: [longer] }).first_difference,
    ).toBeNull();
    const [seen] = untilEnd({ instruments: [on('A', barsOn([1, 2]))] }, [longer]);
    expect(seen).toEqual(on('A', sliceBars(longer.bars, 0, 2)));
  });
});

describe('events', () => {
  it('events are compared as written, in their order', () => {
    const recorded = LINES.map((line, at) => ({ seq: at + 5, line }));
    expect(firstDifferentEvent(recorded, LINES)).toBeUndefined();
    expect(firstDifferentEvent(recorded, LINES.slice(0, 1))).toEqual({
      equal: 1,
      seq: 6,
      recorded: JSON.parse(LINES[1]!),
      rerun: undefined,
    });
    const moved = LINES.toReversed();
    expect(firstDifferentEvent(recorded, moved)).toMatchObject({
      equal: 0,
      seq: 5,
      rerun: { seq: 2 },
    });
  });
});
