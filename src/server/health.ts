import { getHealth, getMetrics, getReadiness } from '../api/health.ts';
import { usableSigner } from '../identity/keys.ts';
import { asServiceError } from './failure.ts';
import type { App, Services } from './services.ts';

export function addHealth(app: App, { identity }: Services): void {
  app.openapi(getHealth, (c) => c.json({ status: 'ok' as const }, 200));

  app.openapi(getReadiness, async (c) => {
    const { storage, signer } = identity;
    try {
      await storage.check();
      await usableSigner(storage.read, signer);
      return c.json({ status: 'ready' as const, missing: [] }, 200);
    } catch (error) {
      const { code, reason } = asServiceError(error);
      if (code === 'license_lease_unavailable') {
        return c.json({ status: 'degraded' as const, missing: [noSigner(reason)] }, 200);
      }
      const missing = [{ part: 'storage' as const, detail: 'the database does not answer' }];
      return c.json({ status: 'unavailable' as const, missing }, 503);
    }
  });
}

/** Anybody may ask, so it does not say more, such as the path of the key. */
function noSigner(reason: string | undefined) {
  const part = { part: 'signing_key' as const, detail: 'no leases are issued' };
  return { ...part, ...(reason !== undefined && { reason }) };
}

export function addMetrics(app: App, { metrics }: Services): void {
  app.openapi(getMetrics, async (c) =>
    c.text(await metrics.text(), 200, { 'Content-Type': metrics.contentType }),
  );
}
