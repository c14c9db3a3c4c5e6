import { ServiceError } from '../base/errors.ts';
import { SCOPES, type Scope } from '../base/scopes.ts';

export const SCOPES_HELP =
  'Scopes: read reads bots and metrics; write creates and changes bots; trade starts, stops and resumes them; halt halts them; license manages customers, plans, contracts, installations, devices and leases; admin manages signing keys, the audit log and the tokens of all administrators. No scope implies another.';

export const NEEDS_ADMIN = 'Needs a token with the scope admin.';

/** Parses `license,admin`. @throws ServiceError `usage` */
export function parseScopes(text: string): Scope[] {
  return text.split(',').map((word) => {
    const scope = SCOPES.find((known) => known === word.trim());
    if (scope !== undefined) return scope;
    throw new ServiceError('usage', `'${word}' is not a scope`, {
      remedy: `Use ${SCOPES.join(', ')}, separated by commas.`,
    });
  });
}
