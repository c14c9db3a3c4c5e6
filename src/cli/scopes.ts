import { ServiceError } from '../errors.ts';
import { SCOPES, type Scope } from '../scopes.ts';

/** `license,admin`. @throws ServiceError `usage` */
export function parseScopes(text: string): Scope[] {
  return text.split(',').map((word) => {
    const scope = SCOPES.find((known) => known === word.trim());
    if (scope !== undefined) return scope;
    throw new ServiceError('usage', `'${word}' is no scope`, {
      remedy: `Write some of ${SCOPES.join(', ')} with commas between them.`,
    });
  });
}
