import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, vi, type TestContext } from 'vitest';
import type { VenueReport } from '../../../src/trading/venue.ts';
import { watchReports } from '../../../src/trading/venues/venue-reports.ts';

const ORDER = { order: 1, client_order_id: 'id-1', symbol: 'X' };

function report(filled: number, time: number): VenueReport {
  const status = filled === 4 ? 'filled' : 'canceled';
  return { ...ORDER, status, filled, cost: 100 * filled, fee: 0, fee_units: 0, time };
}

/** Watches one order whose queries give these answers, the last one for good; errors are thrown. */
function watch({ onTestFinished }: TestContext, answers: readonly (VenueReport | Error)[]) {
  const ended = new AbortController();
  onTestFinished(() => ended.abort());
  const third = Promise.withResolvers<void>();
  let queries = 0;
  let mark = 0;
  let news = Promise.withResolvers<void>();
  const source = {
    async nextOrders() {
      await news.promise;
      news = Promise.withResolvers();
      mark += 1;
      return [{ ...ORDER, mark: String(mark) }];
    },
    drop() {},
    working: () => [],
    async refresh() {},
    async fetch() {
      queries += 1;
      if (queries === 3) third.resolve();
      const answer = answers[Math.min(queries, answers.length) - 1];
      if (answer instanceof Error) throw answer;
      return answer;
    },
    trouble() {},
  };
  const reports = watchReports(source, 3_600_000, ended.signal);
  const announceChange = (): void => news.resolve();
  return { reports, announceChange, third: third.promise, queries: () => queries };
}

it('repeats a failed query once, although several messages named the order', async (context) => {
  const lost = new Error('lost');
  const { reports, announceChange, third, queries } = watch(context, [
    lost,
    lost,
    lost,
    report(4, 1),
  ]);
  const next = reports.next();
  for (let message = 1; message <= 3; message += 1) {
    announceChange();
    await vi.waitUntil(() => queries() === message, { interval: 1 });
  }
  await third;
  expect((await next).value).toEqual(report(4, 1));
  void reports.next();
  // Longer than the longest delay before a first retry.
  await delay(300);
  expect(queries()).toBe(4);
});

describe.concurrent('a report with lower sums than the last one', () => {
  it('is a correction if it is newer and a second query confirms it', async (context) => {
    const answers = [report(4, 1), report(2, 9), report(2, 9), report(2, 10)];
    const { reports, announceChange } = watch(context, answers);
    announceChange();
    expect((await reports.next()).value).toEqual(report(4, 1));
    const next = reports.next();
    announceChange();
    expect((await next).value).toEqual({ ...report(2, 9), is_correction: true });
  });

  it('is ignored if the second query does not confirm it', async (context) => {
    const answers = [report(4, 1), report(2, 9), report(4, 1), report(4, 12)];
    const { reports, announceChange, third } = watch(context, answers);
    announceChange();
    await reports.next();
    const next = reports.next();
    announceChange();
    await third;
    announceChange();
    expect((await next).value).toEqual(report(4, 12));
  });

  it('is no correction if it is older', async (context) => {
    const { reports, announceChange } = watch(context, [report(4, 5), report(2, 1)]);
    announceChange();
    await reports.next();
    const next = reports.next();
    announceChange();
    expect((await next).value).toEqual(report(2, 1));
  });
});
