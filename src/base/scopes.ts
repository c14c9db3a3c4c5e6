/** Scopes of API tokens. No scope implies another. */
export const SCOPES = ['read', 'write', 'trade', 'halt', 'license', 'admin'] as const;

export const MAX_TOKEN_INSTALLATIONS = 100;

export type Scope = (typeof SCOPES)[number];

/** Returns what to do without a scope. The new login replaces the present one, so it names its scopes too. */
export function remedyWithout(scope: Scope, held: Iterable<Scope>): string {
  const kept = new Set(held);
  const needed = SCOPES.filter((one) => one === scope || kept.has(one));
  return `Log in with \`service-local login --scopes ${needed.join(',')}\`. No scope implies another. If SERVICE_LOCAL_TOKEN is set, it is used instead of the login.`;
}
