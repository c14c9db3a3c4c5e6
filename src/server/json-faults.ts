import type { MiddlewareHandler } from 'hono';
import { ServiceError } from '../base/errors.ts';
import { findJsonFault } from '../lease/json.ts';
import type { AppEnv } from './services.ts';

/** Maximum nesting depth, because deeper documents could exhaust the stack of recursive code. */
const MAX_DEPTH = 100;

/**
 * Rejects a JSON body that parsers may read differently.
 * @throws ServiceError `invalid_request`
 */
export const refuseJsonFaults: MiddlewareHandler<AppEnv> = async (c, next) => {
  if (/json/i.test(c.req.header('content-type') ?? '')) checkJson(await c.req.text());
  await next();
};

export function checkJson(text: string): void {
  const fault = findJsonFault(text, MAX_DEPTH);
  if (fault === undefined) return;
  const { kind, pointer } = fault;
  const [code, summary, message] =
    kind === 'duplicate_member'
      ? ['duplicate_field', 'the body contains a field twice', 'is given twice']
      : [kind, 'the body is nested too deeply', `is deeper than ${MAX_DEPTH} levels`];
  throw new ServiceError('invalid_request', summary, { problems: [{ code, pointer, message }] });
}
