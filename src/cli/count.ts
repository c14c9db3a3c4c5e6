import { ServiceError } from '../errors.ts';

/** Of an option: how many. */
export function parseCount(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new ServiceError('usage', `'${text}' is no whole number from 0`);
}
