import { z, type RouteConfig } from '@hono/zod-openapi';
import { closest } from '../base/closest.ts';
import { ServiceError, type Problem } from '../base/errors.ts';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** The part of a request that a validator of Hono has checked: what was sent, and what is wrong. */
type Checked = {
  readonly target: string;
  readonly data: unknown;
} & (
  | { readonly success: true }
  | { readonly success: false; readonly error: { readonly issues: readonly Issue[] } }
);

interface Part {
  readonly target: string;
  readonly data: unknown;
  readonly schema: unknown;
}

/** Whoever sends nonsense gets no more than he can use of what is wrong with it. */
const MOST_PROBLEMS = 20;

/** What Hono calls the parts of a request, where that is not their name. */
const NAMES: Readonly<Record<string, string>> = { json: 'body', param: 'path' };

/**
 * Refuses requests in which something is not as the route defines it.
 * @throws ServiceError `invalid_request` with all that is wrong in one part of the request
 */
export function invalidRequest({ request }: RouteConfig): (checked: Checked) => void {
  const [body] = Object.values(request?.body?.content ?? {});
  const schemas: Readonly<Record<string, unknown>> = {
    json: body && 'schema' in body ? body.schema : undefined,
    param: request?.params,
    query: request?.query,
  };
  return (checked) => {
    if (checked.success) return;
    const { target, data, error } = checked;
    const part = { target, data, schema: schemas[target] };
    const { issues } = error;
    const more =
      issues.length > MOST_PROBLEMS ? `; the first ${MOST_PROBLEMS} faults are told` : '';
    throw new ServiceError(
      'invalid_request',
      `the ${NAMES[target] ?? target} of the request is not as it must be${more}`,
      {
        problems: issues
          .slice(0, MOST_PROBLEMS)
          .flatMap((issue) => problemsOf(issue, part))
          .slice(0, MOST_PROBLEMS),
      },
    );
  };
}

function problemsOf(issue: Issue, part: Part): Problem[] {
  const { path } = issue;
  if (issue.code === 'unrecognized_keys') {
    const known = keysAt(part.schema, path);
    return issue.keys.slice(0, MOST_PROBLEMS).map((key) => {
      const suggestion = closest(key, known);
      const message = known.length > 0 ? `is unknown; known: ${known.join(', ')}` : 'is unknown';
      return {
        ...problem('unknown_field', [...path, key], message, part),
        ...(suggestion && { suggestion }),
      };
    });
  }
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    // What knows the most of its fields is what was most likely meant, and then what has least wrong.
    const [nearest = []] = issue.errors.toSorted(
      (a, b) => countUnknownFields(a) - countUnknownFields(b) || a.length - b.length,
    );
    return nearest.flatMap((inner) =>
      problemsOf({ ...inner, path: [...path, ...inner.path] }, part),
    );
  }
  if (valueAt(part.data, path) === undefined) {
    return [problem('missing_field', path, 'is missing', part)];
  }
  // Zod begins its own messages with what kind of fault it is: `Too small: expected …`.
  const message = issue.message.replace(/^[A-Z][a-z ]*: /, '');
  return [problem('invalid_value', path, message, part)];
}

/** How many fields there are of which a shape knows nothing. */
function countUnknownFields(issues: readonly Issue[]): number {
  return issues.reduce(
    (sum, issue) =>
      issue.code === 'unrecognized_keys' && issue.path.length === 0 ? sum + issue.keys.length : sum,
    0,
  );
}

/** Only a body has pointers; a parameter is named. */
function problem(code: string, path: Path, message: string, { target }: Part): Problem {
  const names = path.map(String);
  return target === 'json'
    ? { code, pointer: pointerOf(names), message }
    : { code, message: `${names.join('.')}: ${message}` };
}

/** RFC 6901. */
function pointerOf(path: readonly string[]): string {
  return path.map((step) => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((inner, step) => {
    const isContainer = typeof inner === 'object' && inner !== null && Object.hasOwn(inner, step);
    return isContainer ? (inner as Record<PropertyKey, unknown>)[step] : undefined;
  }, value);
}

/** The members that an object at `path` can have. */
function keysAt(schema: unknown, path: Path): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) {
    return keysAt(schema.unwrap(), path);
  }
  if (schema instanceof z.ZodUnion) {
    return [...new Set(schema.options.flatMap((option) => keysAt(option, path)))];
  }
  const [step, ...rest] = path;
  if (schema instanceof z.ZodArray) return keysAt(schema.element, rest);
  if (!(schema instanceof z.ZodObject)) return [];
  return step === undefined ? Object.keys(schema.shape) : keysAt(schema.shape[String(step)], rest);
}
