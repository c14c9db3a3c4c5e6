import type { z } from 'zod';
import { ServiceError } from '../base/errors.ts';

/** A route definition of `src/api`; only its type is used here, so that no schema is loaded. */
export interface Route {
  readonly method: string;
  readonly path: string;
  readonly request?: object;
  readonly responses: object;
}

type Part<R, Name extends string, As extends string> = R extends {
  readonly request: { readonly [N in Name]: infer S extends z.ZodType };
}
  ? { readonly [A in As]: z.input<S> }
  : unknown;

type JsonBody<R> = R extends {
  readonly request: {
    readonly body: {
      readonly content: { readonly 'application/json': { schema: infer S extends z.ZodType } };
    };
  };
}
  ? { readonly body: z.input<S> }
  : unknown;

/** The `params`, `query`, `headers` and `body` that the route defines. */
export type RequestOf<R> = Part<R, 'params', 'params'> &
  Partial<Part<R, 'query', 'query'>> &
  Part<R, 'headers', 'headers'> &
  JsonBody<R>;

/** 207 means that only part of the request succeeded; the body says which part. */
type Success = 200 | 201 | 202 | 207;

/** The body of a successful response; undefined for a route that answers 204. */
export type AnswerOf<R> = R extends { readonly responses: { readonly 204: unknown } }
  ? undefined
  : R extends { readonly responses: infer A }
    ? {
        [Status in keyof A & Success]: A[Status] extends {
          readonly content: { readonly 'application/json': { schema: infer S extends z.ZodType } };
        }
          ? z.output<S>
          : never;
      }[keyof A & Success]
    : never;

/** The items of a route that returns one page of a list. */
export type ItemOf<R> = AnswerOf<R> extends { readonly items: readonly (infer T)[] } ? T : never;

/** A `RequestOf` any route. */
export interface RequestParts {
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

/**
 * Returns the path and query of a request.
 * @throws ServiceError `not_found` for a parameter that a URL cannot carry
 */
export function requestTarget(path: string, { params = {}, query = {} }: RequestParts): string {
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = params[name]!;
    // URL parsers remove these segments, even percent-encoded ones.
    if (!['', '.', '..'].includes(value)) return encodeURIComponent(value);
    throw new ServiceError('not_found', `no resource has the ${name} ${JSON.stringify(value)}`);
  });
  const given = Object.entries(query).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  );
  return given.length === 0 ? filled : `${filled}?${new URLSearchParams(given)}`;
}
