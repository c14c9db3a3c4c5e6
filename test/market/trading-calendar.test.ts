import { describe, expect, it, test } from 'vitest';
import { formatTime } from '../../src/market/bar-time.ts';
import { calendarOf, type CalendarName } from '../../src/market/trading-calendar.ts';
import { sp500 } from '../engine/market.ts';
import { DAY } from '../../src/base/durations.ts';

/** Date, open and close of the session at a time, or of the next one. */
function sessionAt(name: CalendarName, time: string): string[] {
  const { date, open, close } = calendarOf(name)!.sessionAt(Date.parse(time));
  return [date, open, close].map(formatTime);
}

describe('a session', () => {
  test.each<[string, CalendarName, string, string, string, string]>([
    ['in winter', 'XNYS', '2024-03-08', '2024-03-08', '14:30', '21:00'],
    ['after clocks went forward', 'XNYS', '2024-03-11', '2024-03-11', '13:30', '20:00'],
    [
      'in the weeks between the clock changes of two continents',
      'XETR',
      '2024-03-11',
      '2024-03-11',
      '08:00',
      '16:30',
    ],
    ['in summer', 'XETR', '2024-04-02', '2024-04-02', '07:00', '15:30'],
    ['on a half day', 'XNAS', '2024-07-03', '2024-07-03', '13:30', '17:00'],
    ['on a half day of old', 'XNYS', '1992-12-24', '1992-12-24', '14:30', '19:00'],
    ['before Christmas', 'XLON', '2022-12-23', '2022-12-23', '08:00', '12:30'],
    ['after a holiday', 'XNYS', '2024-07-04', '2024-07-05', '13:30', '20:00'],
    ['after four days without trading', 'XNYS', '2001-09-11', '2001-09-17', '13:30', '20:00'],
    ['after the coronation', 'XLON', '2023-05-08', '2023-05-09', '07:00', '15:30'],
    ['after Golden Week', 'XTKS', '2019-04-29', '2019-05-07', '00:00', '06:00'],
    ['since Tokyo closes later', 'XTKS', '2024-11-05', '2024-11-05', '00:00', '06:30'],
  ])('%s', (_, name, time, date, open, close) => {
    const hours = [open, close].map((hour) => formatTime(Date.parse(`${date}T${hour}Z`)));
    expect(sessionAt(name, time)).toEqual([date, ...hours]);
  });

  it('ends at its close, and the next one is that of another day', () => {
    expect(sessionAt('XNYS', '2024-11-29T17:59:59Z')[0]).toBe('2024-11-29');
    expect(sessionAt('XNYS', '2024-11-29T18:00Z')[0]).toBe('2024-12-02');
  });
});

it('sessions of New York are the days of an index over twenty years', () => {
  const { time } = sp500();
  const calendar = calendarOf('XNYS')!;
  const dates: number[] = [];
  for (let at = time[0]!; at <= time.at(-1)!; at = dates.at(-1)! + DAY) {
    dates.push(calendar.sessionAt(at).date);
  }
  expect(dates).toEqual([...time]);
});

it.each(['1989-12-29', '2036-01-02'])('no session is assumed for %s', (time) => {
  expect(() => sessionAt('XNYS', time)).toThrow(
    `the calendar XNYS covers 1990 to 2035, not ${time}`,
  );
});

it('24/7 has no sessions', () => {
  expect(calendarOf('24/7')).toBeUndefined();
});
