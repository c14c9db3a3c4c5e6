/** Scopes of API tokens. No scope implies another. */
export const SCOPES = ['read', 'write', 'trade', 'halt', 'license', 'admin'] as const;

export const MAX_TOKEN_INSTALLATIONS = 100;

export type Scope = (typeof SCOPES)[number];

/**
 * Returns the remedy for a missing scope. A login replaces the present one, so the command repeats its
 * scopes.
 */
export function remedyWithout(scope: Scope, held: Iterable<Scope>): string {
  const kept = new Set(held);
  const needed = SCOPES.filter((one) => one === scope || kept.has(one));
  return `Log in with \`service-local login --scopes ${needed.join(',')}\`. No scope implies another. If SERVICE_LOCAL_TOKEN is set, it is used instead of the login.`;
}
