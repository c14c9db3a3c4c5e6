import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { syncDirectory } from '../base/atomic-file.ts';
import { ServiceError } from '../base/errors.ts';
import type { Authorize } from './client.ts';
import { readPrivateFile, writePrivateFile, writing } from '../base/private-file.ts';

export interface StoredToken {
  /** Origin of the server that issued it; it is never sent to another origin. */
  readonly origin: string;
  readonly token_id: string;
  readonly token: string;
}

/** Characters that an HTTP header can carry. */
const TOKEN = /^[!-~]+$/;

export function tokenFile(home: string): string {
  return join(home, 'token');
}

/**
 * Uses SERVICE_LOCAL_TOKEN if set, otherwise the stored token.
 * @throws ServiceError `not_authenticated` without a token for that server; also as `readToken`.
 */
export async function tokenFrom(
  env: NodeJS.ProcessEnv,
  home: string,
  url: string,
): Promise<Authorize> {
  const given = env['SERVICE_LOCAL_TOKEN'];
  if (given) {
    if (TOKEN.test(given)) return () => `Bearer ${given}`;
    throw new ServiceError(
      'not_authenticated',
      'SERVICE_LOCAL_TOKEN contains characters that no token has',
      {
        remedy: 'Set it to a token as `service-local identity tokens create` prints it.',
      },
    );
  }
  const { origin } = new URL(url);
  const stored = await readToken(home);
  if (stored?.origin === origin) return bearer(stored);
  throw new ServiceError(
    'not_authenticated',
    stored
      ? `you are logged in to ${stored.origin}, not to ${origin}`
      : `SERVICE_LOCAL_TOKEN is not set, and you are not logged in to ${origin}`,
    { remedy: `Log in with \`service-local login --url ${origin}\`.` },
  );
}

/** Authorizes requests to the server that issued the token, and throws for any other. */
export function bearer({ origin, token }: StoredToken): Authorize {
  return ({ url }) => {
    if (new URL(url).origin !== origin)
      throw new Error(`the token of ${origin} must not be sent to ${url}`);
    return `Bearer ${token}`;
  };
}

/**
 * Returns undefined if no token is stored.
 * @throws ServiceError `invalid_data` for a file that other users can read, or without a valid token.
 */
export async function readToken(home: string): Promise<StoredToken | undefined> {
  const path = tokenFile(home);
  const text = await readPrivateFile(path);
  if (text === undefined) return undefined;
  const stored = parse(text);
  if (stored) return stored;
  throw new ServiceError('invalid_data', `${path} does not contain a stored token`, {
    remedy: 'Remove the file, and log in again with `service-local login`.',
  });
}

function parse(text: string): StoredToken | undefined {
  try {
    const { origin, token_id, token } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    if (typeof origin !== 'string' || URL.parse(origin)?.origin !== origin) return undefined;
    if (typeof token_id !== 'string' || typeof token !== 'string') return undefined;
    return TOKEN.test(token) ? { origin, token_id, token } : undefined;
  } catch {
    return undefined;
  }
}

export async function writeToken(home: string, token: StoredToken): Promise<void> {
  await writePrivateFile(tokenFile(home), `${JSON.stringify(token)}\n`);
}

export async function removeToken(home: string): Promise<void> {
  const path = tokenFile(home);
  await writing(path, async () => {
    await rm(path, { force: true });
    await syncDirectory(home);
  });
}
