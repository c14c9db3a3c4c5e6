import { formatInstant } from '../api/http.ts';
import * as api from '../api/licenses.ts';
import { getLicense, listLicenses, type License } from '../identity/licenses.ts';
import { refuseOutside } from '../identity/narrowing.ts';
import type { App, Services } from './services.ts';

export function addLicenses(app: App, { identity }: Services): void {
  const { storage, clock } = identity;

  app.openapi(api.listLicenses, async (c) => {
    const { limit, cursor, state, search, silent } = c.req.valid('query');
    const within = c.get('caller')!.narrowing;
    const filter = { state, search, silent: silent === 'true', within };
    const { items, next_cursor } = await listLicenses(storage.read, clock(), filter, {
      limit,
      cursor,
    });
    return c.json({ items: items.map(serializeLicense), next_cursor }, 200);
  });

  app.openapi(api.getLicense, async (c) => {
    const { deployment_id } = c.req.valid('param');
    await refuseOutside(storage.read, c.get('caller')!, { deployment_id });
    return c.json(serializeLicense(await getLicense(storage.read, clock(), deployment_id)), 200);
  });
}

function serializeLicense({ lease, ...license }: License): api.License {
  return {
    ...license,
    contract_ends_at: formatInstant(license.contract_ends_at),
    lease: lease && {
      ...lease,
      issued_at: formatInstant(lease.issued_at),
      expires_at: formatInstant(lease.expires_at),
      grace_ends_at: formatInstant(lease.grace_ends_at),
    },
  };
}
