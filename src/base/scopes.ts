/** Scopes of API tokens. No scope implies another. */
export const SCOPES = ['read', 'write', 'trade', 'halt', 'license', 'admin'] as const;

export const MAX_TOKEN_INSTALLATIONS = 100;

export type Scope = (typeof SCOPES)[number];
