import { z, type RouteConfig } from '@hono/zod-openapi';
import { closest } from '../closest.ts';
import { ServiceError, type Problem } from '../errors.ts';

type Issue = z.core.$ZodIssue;
type Path = readonly PropertyKey[];

/** What a validator of Hono found. */
type Checked =
  | { readonly success: true }
  | { readonly success: false; readonly target: string; readonly error: z.core.$ZodError };

/**
 * Refuses requests in which something is not as the route defines it.
 * @throws ServiceError `invalid_request` with all that is wrong in one part of the request.
 */
export function invalidRequest(route: RouteConfig): (checked: Checked) => void {
  return (checked) => {
    if (checked.success) return;
    const { target, error } = checked;
    const schema = schemaOf(route, target);
    const problems = error.issues.flatMap((issue) => problemsOf(issue, schema, target));
    const what = target === 'json' ? 'body' : target === 'param' ? 'path' : target;
    throw new ServiceError('invalid_request', `the ${what} of the request is not as it must be`, {
      problems,
    });
  };
}

function schemaOf({ request }: RouteConfig, target: string): unknown {
  if (target === 'json') {
    const [content] = Object.values(request?.body?.content ?? {});
    return content && 'schema' in content ? content.schema : undefined;
  }
  return target === 'param' ? request?.params : target === 'query' ? request?.query : undefined;
}

function problemsOf(issue: Issue, schema: unknown, target: string): Problem[] {
  const { path } = issue;
  if (issue.code === 'unrecognized_keys') {
    const known = keysAt(schema, path);
    return issue.keys.map((key) => {
      const suggestion = closest(key, known);
      const message = known.length > 0 ? `is unknown; known: ${known.join(', ')}` : 'is unknown';
      return {
        ...problem('unknown_field', [...path, key], message, target),
        ...(suggestion && { suggestion }),
      };
    });
  }
  if (issue.code === 'invalid_union' && issue.errors.length > 0) {
    const nearest = issue.errors.toSorted((a, b) => a.length - b.length)[0]!;
    return nearest.flatMap((inner) =>
      problemsOf({ ...inner, path: [...path, ...inner.path] }, schema, target),
    );
  }
  return [problem('invalid_value', path, issue.message, target)];
}

/** Only a body has pointers; a parameter is named. */
function problem(code: string, path: Path, message: string, target: string): Problem {
  const names = path.map(String);
  return target === 'json'
    ? { code, pointer: pointerOf(names), message }
    : { code, message: `${names.join('.')}: ${message}` };
}

/** RFC 6901. */
function pointerOf(path: readonly string[]): string {
  return path.map((step) => `/${step.replaceAll('~', '~0').replaceAll('/', '~1')}`).join('');
}

/** The members that an object at `path` can have. */
function keysAt(schema: unknown, [step, ...rest]: Path): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable) {
    return keysAt(schema.unwrap(), step === undefined ? [] : [step, ...rest]);
  }
  if (schema instanceof z.ZodUnion) {
    const path = step === undefined ? [] : [step, ...rest];
    return [...new Set(schema.options.flatMap((option) => keysAt(option, path)))];
  }
  if (schema instanceof z.ZodArray) return keysAt(schema.element, rest);
  if (!(schema instanceof z.ZodObject)) return [];
  return step === undefined ? Object.keys(schema.shape) : keysAt(schema.shape[String(step)], rest);
}
