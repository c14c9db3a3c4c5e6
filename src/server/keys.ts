import { createPublicKey } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';
import { etag } from 'hono/etag';
import { formatInstant, formatInstantOrNull } from '../api/http.ts';
import * as api from '../api/keys.ts';
import { ServiceError } from '../base/errors.ts';
import { listKeys, publishedKeys, retireKey, type KeyState } from '../identity/signing-keys.ts';
import { announceKey, publishedEndorsement } from '../identity/endorsement.ts';
import { publishedTrust, storeTrust } from '../identity/published-trust.ts';
import type { Db } from '../storage/tables.ts';
import type { App, Services } from './services.ts';
import { actorOf } from './authentication.ts';

/** Clients fetch an unknown key at once, and drop a removed key within minutes. */
const CACHE_CONTROL = 'public, max-age=300, stale-if-error=86400';

export function addKeys(app: App, { identity }: Services): void {
  const { storage, clock } = identity;

  for (const { path } of [api.getKeyset, api.getPublicKey]) app.use(path, forAnyOrigin, etag());

  app.openapi(api.getKeyset, async (c) => {
    c.header('Cache-Control', CACHE_CONTROL);
    const keys = await publishedKeys(storage.read);
    const trust =
      (await publishedTrust(storage.read)) ?? (await publishedEndorsementOf(storage.read));
    return c.json({ keys, ...(trust as Pick<api.Keyset, 'roots' | 'keyset'>) }, 200);
  });

  app.openapi(api.getPublicKey, async (c) => {
    const { public_key_id: id } = c.req.valid('query');
    const keys = await publishedKeys(storage.read);
    const jwk = keys.find(({ kid, status }) =>
      id === undefined ? status === 'active' : kid === id,
    );
    if (jwk === undefined) throw id === undefined ? noKey() : notPublished(id);
    c.header('Cache-Control', CACHE_CONTROL);
    const { kid, status = 'active' } = jwk;
    return c.json({ public_key_id: kid, status, jwk, pem: pemOf(jwk.x) }, 200);
  });

  app.openapi(api.listKeys, async (c) => {
    const keys = await listKeys(storage.read, clock());
    return c.json({ items: keys.map(serializeKey), next_cursor: null }, 200);
  });

  app.openapi(api.retireKey, async (c) => {
    const { public_key_id } = c.req.valid('param');
    return c.json(serializeKey(await retireKey(identity, actorOf(c), public_key_id)), 200);
  });

  app.openapi(api.announceKey, async (c) => {
    const { x } = c.req.valid('json');
    const stepUp = c.req.header('service-step-up');
    return c.json(await announceKey(identity, c.get('caller')!, x, stepUp), 200);
  });

  app.openapi(api.storeTrust, async (c) => {
    const { replaces, ...document } = c.req.valid('json');
    const stored = await storeTrust(identity, c.get('caller')!, document, {
      replaces,
      step_up_token: c.req.header('service-step-up'),
    });
    return c.json(
      {
        ...stored,
        root_expires_at: formatInstant(stored.root_expires_at),
        keyset_expires_at: formatInstant(stored.keyset_expires_at),
        key_ids: [...stored.key_ids],
        retired: [...stored.retired],
      },
      200,
    );
  });
}

async function publishedEndorsementOf(db: Db): Promise<{ readonly keyset?: unknown }> {
  const keyset = await publishedEndorsement(db);
  return keyset === undefined ? {} : { keyset };
}

/** Public keys may be read by scripts of any web site. */
const forAnyOrigin: MiddlewareHandler = async (c, next) => {
  await next();
  c.header('Access-Control-Allow-Origin', '*');
};

function noKey(): ServiceError {
  return new ServiceError('license_lease_unavailable', 'this server has no key to sign leases', {
    reason: 'no_key',
    remedy:
      'Start the server with a signing key, which `service-local identity keys generate` makes.',
  });
}

function notPublished(id: string): ServiceError {
  return new ServiceError('not_found', `key ${id} is unknown or retired`, {
    remedy: '/.well-known/license-keys.json lists the published keys.',
  });
}

function pemOf(x: string): string {
  const jwk = { kty: 'OKP', crv: 'Ed25519', x };
  return createPublicKey({ key: jwk, format: 'jwk' }).export({ format: 'pem', type: 'spki' });
}

function serializeKey(key: KeyState): api.KeyState {
  return {
    ...key,
    activated_at: formatInstant(key.activated_at),
    retiring_at: formatInstantOrNull(key.retiring_at),
    retired_at: formatInstantOrNull(key.retired_at),
    retirable_at: formatInstantOrNull(key.retirable_at),
  };
}
