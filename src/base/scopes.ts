/** What a token may be good for. No scope implies another. */
export const SCOPES = ['read', 'write', 'trade', 'halt', 'license', 'admin'] as const;

/** A token can be narrowed to at most this many installations. */
export const MAX_TOKEN_INSTALLATIONS = 100;

export type Scope = (typeof SCOPES)[number];
