import { totalmem } from 'node:os';
import { ServiceError } from '../base/errors.ts';

export const DEFAULT_COLUMN_MB = 512;

/** Option for the memory of the indicators that trials share. */
export const MEMORY_OPTION = {
  value: 'size',
  description: 'memory for indicators that trials share, such as 2G; 512M by default',
  parse: parseMegabytes,
} as const;

/** @returns megabytes of 2^20 bytes */
function parseMegabytes(text: string): number {
  const [, count, unit] = /^(\d+)([MG])B?$/i.exec(text) ?? [];
  if (count === undefined || unit === undefined) {
    throw new ServiceError('usage', `${text} is not a size such as 512M or 2G`, {
      remedy: 'Write a whole number of megabytes (M) or gigabytes (G); 0M disables sharing.',
    });
  }
  const megabytes = Number(count) * (unit.toUpperCase() === 'G' ? 1024 : 1);
  const available = Math.floor(totalmem() / 2 ** 20);
  if (megabytes <= available) return megabytes;
  throw new ServiceError('usage', `${text} is more than the memory of this machine`, {
    remedy: `Write at most ${available}M.`,
  });
}
