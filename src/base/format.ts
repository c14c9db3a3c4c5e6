/** Numbers and times for people, in the terminal and in reports. */

/** Shown for a figure that does not exist. */
export const NO_VALUE = '—';

/** Replaces hyphens by minus signs, which align with digits and which screen readers read. */
function typeset(text: string): string {
  return text.replaceAll('-', '−');
}

/** Creates the formatter on first use: the first one loads locale data, which takes long. */
function formatter(options: Intl.NumberFormatOptions): (value: number) => string {
  let format: Intl.NumberFormat | undefined;
  return (value) => {
    // With the default, a loss of 0.001 % would read "−0.00%".
    format ??= new Intl.NumberFormat('en-US', { signDisplay: 'negative', ...options });
    return typeset(format.format(value));
  };
}

const fixed = (digits: number): Intl.NumberFormatOptions => ({
  minimumFractionDigits: digits,
  maximumFractionDigits: digits,
});
const cents = formatter(fixed(2));
const fraction = formatter({ minimumFractionDigits: 2, maximumFractionDigits: 8 });
const significant = formatter({ maximumSignificantDigits: 6 });

/** `0.1234` → `12.34%`. */
export const formatPercent = formatter({ style: 'percent', ...fixed(2) });
/** `0.1234` → `12.3`, for tables with the unit in the header. */
export const formatPercentPoints = (value: number): string => oneDecimal(value * 100);
const oneDecimal = formatter(fixed(1));
export const formatRatio = formatter(fixed(2));
export const formatCount = formatter({ maximumFractionDigits: 0 });
export const formatQuantity = formatter({
  maximumFractionDigits: 2,
  maximumSignificantDigits: 6,
  roundingPriority: 'morePrecision',
});

/** Two decimals, or up to eight below one: accounts may be in bitcoin. */
export function formatMoney(value: number): string {
  return Math.abs(value) >= 1 || value === 0 ? cents(value) : fraction(value);
}

/** Six significant digits and at least two decimals: `1,455.22`, `1.08345`, `0.0000123457`. */
export function formatPrice(price: number): string {
  const decimals = 5 - Math.floor(Math.log10(price));
  return priceWith[Math.min(12, Math.max(2, decimals))]!(price);
}
const priceWith = Array.from({ length: 13 }, (_, decimals) =>
  formatter({ minimumFractionDigits: 2, maximumFractionDigits: Math.max(2, decimals) }),
);

/** For figures of unknown unit: whole numbers in full, others to six significant digits. */
export function formatNumber(value: number): string {
  return Number.isInteger(value) ? formatCount(value) : significant(value);
}

/** ISO 8601 in UTC: the date, and unless `dateOnly`, the time to the minute or second. */
export function formatInstant(ms: number, dateOnly: boolean): string {
  const [date, time] = new Date(ms).toISOString().split('T') as [string, string];
  if (dateOnly) return date;
  return `${date} ${time.slice(0, ms % MINUTE === 0 ? 5 : 8)}`;
}

/** `1 bar`, `2,000 bars`. */
export function formatCountOf(count: number, noun: string): string {
  return `${formatCount(count)} ${noun}${count === 1 ? '' : 's'}`;
}

/** `3 days`, `2 hours`, `119 seconds`: rounded down, in the largest unit of which there are two. */
export function formatSpan(ms: number): string {
  const units = [
    [DAY, 'day'],
    [HOUR, 'hour'],
    [MINUTE, 'minute'],
  ] as const;
  const [size, name] = units.find(([each]) => ms >= 2 * each) ?? [1000, 'second'];
  return formatCountOf(Math.floor(ms / size), name);
}

/**
 * The name of an administrator alone; other names with the kind of actor, since devices choose their
 * own names; without a name, the actor as in the log.
 */
export function formatActor(actor: string, name: string | null): string {
  if (name === null) return actor;
  return actor.startsWith('administrator:')
    ? name
    : `${actor.slice(0, actor.indexOf(':'))} ${name}`;
}

/** `deployment_id=acme-tokyo before.ends_at=…`, for people: it cannot be parsed reliably. */
export function formatFacts(details: object, prefix = ''): string[] {
  return Object.entries(details).flatMap(([key, value]: [string, unknown]) => {
    const name = `${prefix}${key}`;
    if (Array.isArray(value)) return [`${name}=${value.join(',')}`];
    if (typeof value === 'object' && value !== null) return formatFacts(value, `${name}.`);
    return [`${name}=${/\s/.test(String(value)) ? JSON.stringify(value) : String(value)}`];
  });
}
import { DAY, HOUR, MINUTE } from './durations.ts';
