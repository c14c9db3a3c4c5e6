import * as api from '../api/leases.ts';
import { formatInstant, formatInstantOrNull } from '../api/http.ts';
import { issueLease } from '../identity/issue.ts';
import { getLease, listLeases, type LeaseRecord } from '../identity/leases.ts';
import { renewLease } from '../identity/renew.ts';
import { revoke, type Revoked } from '../identity/revoke.ts';
import type { App, Services } from './app.ts';

export function addLeases(app: App, { identity, metrics }: Services): void {
  const { storage, clock } = identity;

  app.openapi(api.createLease, async (c) => {
    const request = c.req.valid('json');
    const proof = c.get('device');
    const body = await metrics.countingDenials(async () => {
      if (proof === undefined) {
        const text = await issueLease(identity, c.get('caller')!, issueRequest(request));
        metrics.issued.inc();
        return text;
      }
      const renewed = await renewLease(identity, proof, renewRequest(request));
      (renewed.fresh ? metrics.renewed : metrics.repeated).inc();
      if (renewed.warnings.length > 0) metrics.clonesSuspected.inc();
      return renewed.body;
    });
    return c.body(body, 201, { 'Content-Type': 'application/json' }) as never;
  });
}
