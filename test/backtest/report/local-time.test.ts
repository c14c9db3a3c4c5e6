import { expect, test } from 'vitest';
import { localTimes } from '../../../src/backtest/report/local-time.ts';
import { tradeGroupsSection } from '../../../src/backtest/report/trade-groups-section.ts';
import type { ReportInput } from '../../../src/backtest/report/input.ts';
import type { Trade } from '../../../src/engine/round-trip.ts';

test('weekday and hour follow the time zone and its daylight saving time', () => {
  const at = localTimes('America/New_York');
  expect(at(Date.UTC(2024, 0, 5, 14, 45))).toEqual({ weekday: 'Friday', hour: '09:00' });
  expect(at(Date.UTC(2024, 6, 5, 14, 45))).toEqual({ weekday: 'Friday', hour: '10:00' });
  expect(at(Date.UTC(2024, 6, 6, 3, 59))).toEqual({ weekday: 'Friday', hour: '23:00' });
  expect(localTimes('UTC')(Date.UTC(2024, 6, 6))).toEqual({ weekday: 'Saturday', hour: '00:00' });
  expect(localTimes('Asia/Kathmandu')(Date.UTC(2024, 6, 5, 18, 15))).toEqual({
    weekday: 'Saturday',
    hour: '00:00',
  });
});

test('weekdays and hours of UTC are those of a formatter', () => {
  const [utc, formatted] = [localTimes('UTC'), localTimes('Etc/UTC')];
  for (let time = Date.UTC(1969, 11, 29); time < Date.UTC(1970, 0, 12); time += 59 * 60_000) {
    expect(utc(time)).toEqual(formatted(time));
  }
});

test('trades are grouped by the hour at the exchange, and daily ones by their date', () => {
  const trade = (id: number, entry_time: number): Trade =>
    ({
      id,
      symbol: 'SPX',
      side: 'long',
      entry_time,
      exit_time: entry_time,
      pnl: 1,
      return: 0,
    }) as Trade;
  const trades = [trade(1, Date.UTC(2024, 0, 8, 14, 30)), trade(2, Date.UTC(2024, 6, 8, 13, 30))];
  const input = { result: { trades }, instruments: [], currency: 'USD' } as unknown as ReportInput;
  const text = (section: unknown): string => JSON.stringify(section);
  const local = text(tradeGroupsSection({ ...input, calendar: 'XNYS' }, false));
  expect(local).toContain('Hour of entry, America/New York');
  expect(local).toContain('09:00');
  expect(local).not.toContain('13:00');
  const utc = text(tradeGroupsSection(input, false));
  expect(utc).toContain('Hour of entry, UTC');
  expect(utc).toContain('14:00');
  expect(text(tradeGroupsSection({ ...input, calendar: 'XNYS' }, true))).toContain(
    'Weekday of entry, UTC',
  );
});
