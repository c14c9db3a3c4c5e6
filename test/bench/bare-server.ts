/**
 * The floor that issuing is measured against: a Hono route that signs the lease it is asked for with
 * `node:crypto`, by hand, and answers it. It checks neither caller nor request, and knows no registry,
 * no log and no disk. Prints its URL.
 */
import { generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { PAYLOAD_TYPE } from '../../src/lease/envelope.ts';

const TTL_SECONDS = 7 * 86_400;
const GRACE_SECONDS = 3 * 86_400;
const KEY_ID = 'FxVhuO_Ir82yjJ8FMIoWpXpN_BZn-l_LcBqPspZfzfk';

const { privateKey } = generateKeyPairSync('ed25519');
const time = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`;

const app = new Hono();
app.post('/auth/license/leases', async (c) => {
  const { deployment_id } = await c.req.json<{ readonly deployment_id: string }>();
  const now = Date.now();
  // In the order of the names, so that this is canonical JSON.
  const claims = {
    customer_id: 'acme',
    deployment_id,
    entitlements: ['kb_federation', 'live_trading'],
    expires_at: time(now + TTL_SECONDS * 1000),
    grace_ends_at: time(now + (TTL_SECONDS + GRACE_SECONDS) * 1000),
    grace_period_seconds: GRACE_SECONDS,
    issued_at: time(now),
    issuer: 'service-local',
    lease_id: randomUUID(),
    public_key_id: KEY_ID,
    ttl_seconds: TTL_SECONDS,
  };
  const payload = JSON.stringify(claims);
  const toSign = `DSSEv1 ${PAYLOAD_TYPE.length} ${PAYLOAD_TYPE} ${payload.length} ${payload}`;
  const sig = sign(null, Buffer.from(toSign), privateKey).toString('base64');
  const lease = {
    payloadType: PAYLOAD_TYPE,
    payload: Buffer.from(payload).toString('base64'),
    signatures: [{ keyid: KEY_ID, sig }],
  };
  return c.json({ lease, ...claims }, 201);
});
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  console.log(`http://127.0.0.1:${port}`);
});
