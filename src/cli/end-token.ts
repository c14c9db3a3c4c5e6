import type { revokeToken } from '../api/administrators.ts';
import { bearer, type StoredToken } from '../client/token.ts';
import { ServiceError } from '../base/errors.ts';
import type { Context } from './verb.ts';

/**
 * Revokes the token of a login on its server, unless the token has already ended.
 * @throws ServiceError `server_unreachable`, or the error of the server
 */
export async function endToken(
  stored: StoredToken,
  { message }: Pick<Context, 'message'>,
): Promise<void> {
  const { createClient } = await import('../client/client.ts');
  const { origin: url, token_id } = stored;
  const server = createClient({ url, authorize: bearer(stored), warn: message });
  const path = '/identity/tokens/{token_id}';
  try {
    await server.call<typeof revokeToken>('delete', path, { params: { token_id } });
  } catch (error) {
    // The token was revoked or has expired, or its owner is disabled.
    if (!(error instanceof ServiceError && error.code === 'not_authenticated')) throw error;
  }
}
