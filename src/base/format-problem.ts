import type { Problem } from './errors.ts';
import { printableLine } from './printable.ts';

/** `file:line:column /pointer CODE message (did you mean …)`, without the parts that are absent. */
export function formatProblem(problem: Problem): string {
  const { file, line, column, pointer, code, message, suggestion } = problem;
  const place = [file, line, column].filter((part) => part !== undefined).join(':');
  const hint = suggestion === undefined ? '' : ` (did you mean ${suggestion}?)`;
  const parts = [place, pointer, code, message].filter((part) => part !== undefined && part !== '');
  return printableLine(`${parts.join(' ')}${hint}`);
}
