import { ServiceError } from '../base/errors.ts';

/** Of an option: how many, of those that the server takes. */
export function parseCountIn(least: number, most: number): (text: string) => number {
  return (text) => {
    const count = parseCount(text);
    if (count >= least && count <= most) return count;
    throw new ServiceError('usage', `'${text}' is not from ${least} to ${most}`);
  };
}

/** Of an option: how many. */
export function parseCount(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new ServiceError('usage', `'${text}' is no whole number from 0`);
}
