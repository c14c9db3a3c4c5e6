import { ServiceError } from './errors.ts';

const UNITS = { d: 86_400, h: 3600, m: 60, s: 1 } as const;

/**
 * `7d`, `12h`, `30m` or `90s` in seconds.
 * @throws ServiceError `usage`
 */
export function parseSeconds(text: string): number {
  const [, count, unit] = /^(\d{1,9})([dhms])$/.exec(text) ?? [];
  if (count !== undefined) return Number(count) * UNITS[unit as keyof typeof UNITS];
  throw new ServiceError('usage', `'${text}' is no length of time`, {
    remedy: 'Write it as 7d, 12h, 30m or 90s.',
  });
}

/** As `parseSeconds` reads it, in the largest unit that leaves no rest. */
export function formatSeconds(seconds: number): string {
  const [unit, size] = Object.entries(UNITS).find(([, each]) => seconds % each === 0)!;
  return `${seconds / size}${unit}`;
}
