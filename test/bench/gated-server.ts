/**
 * The app of the server with the same route twice: `/open`, and `/gated`, which needs a license, and
 * has it. Prints its URL.
 */
import { z } from '@hono/zod-openapi';
import { serve } from '@hono/node-server';
import { defineRoute, jsonResponse, PUBLIC } from '../../src/api/http.ts';
import { formatTime } from '../../src/lease/time.ts';
import { KEY, keysetOf, leaseOf, newLicensePlace } from '../gate/license-place.ts';
import { newTestApp } from '../server/in-process.ts';

const place = newLicensePlace();
place.put(place.files.keyset, keysetOf(KEY));
place.put(place.files.lease, leaseOf('1', 0, { issued_at: formatTime(Date.now()) }));
const gate = await place.open({ clock: Date.now });
const { app, close } = await newTestApp({}, gate);

const open = defineRoute({
  method: 'post',
  path: '/open',
  operationId: 'open',
  summary: 'Trade',
  tags: ['Server'],
  security: PUBLIC,
  responses: { 201: jsonResponse('Done.', z.strictObject({ placed: z.literal(true) })) },
});
const gated = defineRoute({ ...open, path: '/gated', feature: 'live_trading' });
app.openapi(open, (c) => c.json({ placed: true as const }, 201));
app.openapi(gated, (c) => c.json({ placed: true as const }, 201));

const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => {
  console.log(`http://127.0.0.1:${port}`);
});
process.once('SIGTERM', () => {
  server.close();
  void close()
    .then(place.remove)
    .then(() => process.exit());
});
