import { ServiceError } from '../base/errors.ts';

/** Parser of an option that takes an integer from `least` to `most`. */
export function parseCountIn(least: number, most: number): (text: string) => number {
  return (text) => {
    const count = parseCount(text);
    if (count >= least && count <= most) return count;
    throw new ServiceError('usage', `'${text}' is not a whole number from ${least} to ${most}`, {
      remedy: `Write a number from ${least} to ${most}.`,
    });
  };
}

export function parseCount(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new ServiceError('usage', `'${text}' is not a whole number`, {
    remedy: 'Write digits only, such as 20.',
  });
}
