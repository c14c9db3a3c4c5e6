/** Schemas of the scalar and map types that the fields of a spec share. */
import { z } from 'zod';
import type { Problem } from '../base/errors.ts';
import { SYMBOL, SYMBOL_RULE } from '../market/symbol.ts';
import { parseWindow } from '../market/bar-time.ts';

/** Replacements for problems that zod would describe poorly. */
export const SPECIAL_PROBLEMS = z.registry<{
  readonly of: (value: unknown) => Pick<Problem, 'code' | 'message'> | undefined;
}>();

/** Money is text, because a YAML number becomes a float before its digits can be checked. */
const decimal = (pattern: RegExp, expected: string) =>
  z
    .string()
    .max(40)
    .regex(pattern, expected)
    .register(SPECIAL_PROBLEMS, {
      of: (value) =>
        typeof value === 'number'
          ? { code: 'unquoted_money', message: 'must be in quotes, to keep its exact digits' }
          : undefined,
    });

export const amount = decimal(/^\d+(\.\d+)?$/, 'must be a decimal number such as "0.5"');
export const positiveAmount = decimal(
  /^(?=.*[1-9])\d+(\.\d+)?$/,
  'must be a decimal number above 0 such as "100000"',
);
export const shareAmount = decimal(
  /^(0(\.\d+)?|1(\.0+)?)$/,
  'must be a decimal number from 0 to 1 such as "0.001" for 0.1 %',
);

const CONTROL_CHARACTER = /\p{Cc}/u;
export const CONTROL_CHARACTER_IN_PARAGRAPHS = /[^\P{Cc}\n\t]/u;

/** Text without control characters, which could affect terminals and files. */
export const text = (most: number, forbidden = CONTROL_CHARACTER) =>
  z
    .string()
    .min(1)
    .max(most)
    .refine((value) => !forbidden.test(value), 'must not contain control characters');
export const path = text(1000);

export const map = <V extends z.ZodType>(name: z.ZodString, value: V, most: number) =>
  z
    .record(name, value)
    .refine((entries) => Object.keys(entries).length <= most, `must have at most ${most} entries`)
    .meta({ maxProperties: most });

/** Above 0, at most 1. */
export const share = z.number().gt(0).max(1);

export const time = z
  .string()
  .refine(
    isTime,
    'must be an existing date such as 2000-01-03, or a time such as 2020-04-17T14:30:00Z',
  )
  .meta({ pattern: String.raw`^\d{4}-\d{2}-\d{2}` });

function isTime(value: string): boolean {
  try {
    return parseWindow(value, undefined).from > -Infinity;
  } catch {
    return false;
  }
}

export const symbol = z.string().regex(SYMBOL, SYMBOL_RULE);
