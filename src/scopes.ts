/** What a token may be good for. No scope implies another. */
export const SCOPES = ['read', 'write', 'trade', 'halt', 'license', 'admin'] as const;

export type Scope = (typeof SCOPES)[number];
