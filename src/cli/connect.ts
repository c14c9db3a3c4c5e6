import type { Client } from '../client/client.ts';
import type { Context } from './verb.ts';

/**
 * Creates a client of the server in the setting `server_url`, with the token of the environment or
 * of the login.
 *
 * @param signal aborts requests.
 * @throws ServiceError `not_authenticated` without a token
 */
export async function connect(
  { settings, io, message }: Context,
  signal?: AbortSignal,
): Promise<Client> {
  const { createClient } = await import('../client/client.ts');
  const { tokenFrom } = await import('../client/token.ts');
  const { home, server_url: url } = settings;
  const authorize = await tokenFrom(io.env, home, url);
  return createClient({ url, authorize, warn: message, signal });
}
