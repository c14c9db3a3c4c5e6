/** What a token may be good for. No scope implies another. */
export const SCOPES = ['read', 'write', 'trade', 'halt', 'license', 'admin'] as const;

/** A token can be narrowed to at most this many deployments. */
export const MAX_TOKEN_DEPLOYMENTS = 100;

export type Scope = (typeof SCOPES)[number];
