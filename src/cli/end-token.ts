import type { revokeToken } from '../api/administrators.ts';
import { bearer, type StoredToken } from '../client/token.ts';
import { ServiceError } from '../base/errors.ts';
import type { Context } from './verb.ts';

/**
 * Ends the token of a login on its server, unless it has ended already.
 * @throws ServiceError `server_unreachable`, or what the server answers.
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
    // It is no token any more: revoked, expired, or its owner is disabled.
    if (!(error instanceof ServiceError && error.code === 'not_authenticated')) throw error;
  }
}
