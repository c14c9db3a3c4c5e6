/** An API with one route that needs a license. Run it with `node examples/gated-api.ts`. */
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { openLicenseGate } from 'service-local/gate';

const gate = await openLicenseGate({
  enforced: true,
  // root: 'FINGERPRINT', // pins the issuer's root, so that keys made by a licensee are refused
  onChange({ state, reason, refused }) {
    console.error(`license: ${state} ${reason ?? ''}`);
    for (const { path, detail } of refused) console.error(`license: ${path}: ${detail}`);
  },
  warn: console.error,
});

const app = new Hono();
app.get('/positions', (c) => c.json([])); // Reading needs no license.
app.post('/orders', gate.requireFeature('live_trading'), (c) => c.json({ status: 'accepted' }));

serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(process.env['PORT'] ?? 0) }, (at) => {
  console.log(`http://127.0.0.1:${at.port}`);
});
