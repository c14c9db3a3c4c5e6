import { ServiceError } from '../base/errors.ts';
import { SCOPES, type Scope } from '../base/scopes.ts';

/** For the help of verbs that make tokens. */
export const SCOPES_HELP =
  "Scopes: read is for looking at bots and for the metrics; write for making and changing bots; trade for starting, stopping and resuming them; halt for halting them; license for customers, plans, contracts, installations, devices and leases; admin for signing keys, the audit log and everybody's tokens. No scope implies another.";

/** For the help of verbs that need it. */
export const NEEDS_ADMIN = 'Needs a token with the scope admin.';

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
