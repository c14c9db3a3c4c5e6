/**
 * The floor that issuing is measured against: a Hono route that signs the claims of a lease with
 * `node:crypto` and answers them. It checks neither caller nor request, and knows no registry, no log
 * and no disk. Prints its URL.
 */
import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';

const { privateKey } = generateKeyPairSync('ed25519');
const TTL_SECONDS = 7 * 86_400;
const GRACE_SECONDS = 3 * 86_400;

const after = (ms: number, seconds: number): string => new Date(ms + seconds * 1000).toISOString();

const app = new Hono();
app.post('/auth/license/leases', async (c) => {
  const { deployment_id } = await c.req.json<{ readonly deployment_id: string }>();
  const now = Date.now();
  const claims = {
    lease_id: randomUUID(),
    deployment_id,
    customer_id: 'acme',
    entitlements: ['kb_federation', 'live_trading'],
    issued_at: after(now, 0),
    expires_at: after(now, TTL_SECONDS),
    grace_ends_at: after(now, TTL_SECONDS + GRACE_SECONDS),
    ttl_seconds: TTL_SECONDS,
    grace_period_seconds: GRACE_SECONDS,
    public_key_id: 'FxVhuO_Ir82yjJ8FMIoWpXpN_BZn-l_LcBqPspZfzfk',
    issuer: 'service-local',
  };
  const payload = Buffer.from(JSON.stringify(claims));
  const sig = sign(null, payload, privateKey).toString('base64');
  const signatures = [{ keyid: claims.public_key_id, sig }];
  return c.json({ lease: { payload: payload.toString('base64'), signatures }, ...claims }, 201);
});
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  console.log(`http://127.0.0.1:${port}`);
});
