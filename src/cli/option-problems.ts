import type { Problem, ServiceError } from '../base/errors.ts';
import type { Options } from './verb.ts';

type Shown = Pick<ServiceError, 'code' | 'message' | 'problems' | 'remedy'>;

/**
 * Replaces the pointers into the body of a request with the options that a person typed. `--json`
 * keeps the pointers.
 */
export function nameOptions(error: Shown, options: Options = {}): Shown {
  if (error.code !== 'invalid_request' && error.code !== 'invalid_spec') return error;
  const named = error.problems.map((problem) => ({ problem, option: optionOf(problem, options) }));
  const found = new Set(named.flatMap(({ option }) => option ?? []));
  const isComplete = named.every(({ option }) => option !== undefined) && found.size > 0;
  const areMissing = named.every(({ problem }) => problem.code === 'missing_field');
  const { code, remedy } = error;
  return {
    code,
    remedy,
    message: isComplete
      ? `${[...found].join(', ')} ${found.size === 1 ? 'is' : 'are'} ${areMissing ? 'missing' : 'invalid'}`
      : error.message,
    problems: named.map(({ problem, option }) =>
      option === undefined ? problem : { ...problem, pointer: option },
    ),
  };
}

/** Finds the option of a field: `expires_in_seconds` is `--expires`, and `plan_id` `--plan` or `--id`. */
function optionOf({ file, pointer }: Problem, options: Options): string | undefined {
  const [, field, key] = pointer?.split('/') ?? [];
  if (field === undefined || file !== undefined) return undefined;
  const bare = field.replace(/(_in|_period)?_seconds$|_ids?$/, '');
  const candidates = [field, bare, bare.replace(/s$/, ''), field.endsWith('_id') ? 'id' : ''];
  const name = candidates.find((candidate) => Object.hasOwn(options, camelCase(candidate)));
  const option = name && `--${name.replaceAll('_', '-')}`;
  return option === '--param' && key !== undefined ? `${option} ${key}` : option;
}

function camelCase(field: string): string {
  return field.replaceAll(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
