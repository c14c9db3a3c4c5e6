import { ServiceError } from './errors.ts';

const UNITS = { d: 86_400, h: 3600, m: 60, s: 1 } as const;

/**
 * Parses `7d`, `12h`, `30m` or `90s`.
 * @throws ServiceError `usage`
 */
export function parseSeconds(text: string): number {
  const [, count, unit] = /^(\d{1,9})([dhms])$/.exec(text) ?? [];
  if (count !== undefined) return Number(count) * UNITS[unit as keyof typeof UNITS];
  throw new ServiceError('usage', `'${text}' is not a duration`, {
    remedy: 'Write a number and a unit, such as 7d, 12h, 30m or 90s.',
  });
}

/** In the largest unit that divides it, as `parseSeconds` reads it. */
export function formatSeconds(seconds: number): string {
  const [unit, size] = Object.entries(UNITS).find(([, each]) => seconds % each === 0)!;
  return `${seconds / size}${unit}`;
}
