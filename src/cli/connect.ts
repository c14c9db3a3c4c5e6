import type { Client } from '../client/client.ts';
import type { Context } from './verb.ts';

/**
 * For verbs that ask the hosted side, with the token of the environment. Such a verb honours the
 * setting `server_url`.
 *
 * @throws ServiceError `not_authenticated` without a token
 */
export async function connect({ settings, io, message }: Context): Promise<Client> {
  const { createClient, tokenFrom } = await import('../client/client.ts');
  return createClient({ url: settings.server_url, authorize: tokenFrom(io.env), warn: message });
}
