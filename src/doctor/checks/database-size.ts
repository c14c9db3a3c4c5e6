import type { getSizes } from '../../api/health.ts';
import { formatCountOf } from '../../base/format.ts';
import type { Facts } from '../machine-facts.ts';
import type { Check } from '../run-checks.ts';

const MIB = 2 ** 20;

/** Reports how large the database of the server is, and which tables grow most. */
export const DATABASE_SIZE_CHECK: Check<Facts> = {
  code: 'database_size',
  async run({ administrator }) {
    const server = await administrator!();
    const sizes = await server.call<typeof getSizes>('get', '/sizes', {});
    const { database_bytes, tables, events } = sizes;
    const growing = tables
      .map(({ table, bytes_per_day }) => ({ table, perDay: bytes_per_day ?? 0 }))
      .filter(({ perDay }) => perDay >= MIB / 10)
      .toSorted((a, b) => b.perDay - a.perDay);
    const total = growing.reduce((sum, { perDay }) => sum + perDay, 0);
    const isKnown = tables.some(({ bytes_per_day }) => bytes_per_day !== null);
    const most = growing.slice(0, 3).map(({ table, perDay }) => `${table} by ${inMib(perDay)}`);
    const growth =
      most.length > 0
        ? `grows by ${inMib(total)} a day, ${most.join(', ')}`
        : isKnown
          ? 'does not grow'
          : 'has not been measured for a day, so its growth is unknown';
    const stored = `${formatCountOf(events.database, 'event')} in it, and ${events.archived} archived`;
    return {
      status: 'ok',
      summary: `the database has ${inMib(database_bytes)} and ${growth}; ${stored}`,
      evidence: sizes,
    };
  },
};

function inMib(bytes: number): string {
  const mib = bytes / MIB;
  return `${mib.toFixed(mib < 10 ? 1 : 0)} MiB`;
}
