import type { z } from 'zod';

/** What is wrong with a field of a file, in a few words and without its value, which may be a secret. */
export function issueText(issue: z.core.$ZodIssue): string {
  if (issue.code === 'unrecognized_keys') {
    const { keys } = issue;
    return `unknown field${keys.length === 1 ? '' : 's'} ${keys.map((key) => `"${key}"`).join(', ')}`;
  }
  if (issue.code === 'invalid_value') return `must be ${issue.values.map(String).join(' or ')}`;
  if (issue.code === 'invalid_union') {
    const all = new Set(issue.errors.flat().map((inner) => issueText(inner)));
    return [...all].join(', or ') || issue.message;
  }
  // Zod begins its own messages with what kind of fault it is: `Too small: expected …`.
  const message = issue.message.replace(/^[A-Z][a-z ]*: /, '');
  return message.replace(/^expected (.*), received undefined$/, 'is missing; expected $1');
}
