import { z, type RouteConfig } from '@hono/zod-openapi';
import { closest } from '../base/closest.ts';
import { ServiceError, type Problem } from '../base/errors.ts';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** Result of a Hono validator: the part of the request, and what is wrong with it. */
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

/** Limits the response to an entirely wrong request. */
const MOST_PROBLEMS = 20;

/** Names of request parts for messages, where Hono uses other names. */
const NAMES: Readonly<Record<string, string>> = { json: 'body', param: 'path' };

/**
 * Rejects requests that do not match the definition of the route.
 * @throws ServiceError `invalid_request` with all errors in one part of the request
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
      issues.length > MOST_PROBLEMS ? `; only the first ${MOST_PROBLEMS} errors are listed` : '';
    throw new ServiceError(
      'invalid_request',
      `the ${NAMES[target] ?? target} of the request is invalid${more}`,
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
    // The alternative with the fewest unknown fields, then with the fewest errors, is the likely intent.
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
  // Zod messages start with the type of error, as in `Too small: expected …`.
  const message = issue.message.replace(/^[A-Z][a-z ]*: /, '');
  return [problem('invalid_value', path, message, part)];
}

/** Number of fields that a schema does not know. */
function countUnknownFields(issues: readonly Issue[]): number {
  return issues.reduce(
    (sum, issue) =>
      issue.code === 'unrecognized_keys' && issue.path.length === 0 ? sum + issue.keys.length : sum,
    0,
  );
}

/** Problems in the body have a pointer; problems in parameters name the parameter. */
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

/** Possible field names of the object at `path`. */
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
