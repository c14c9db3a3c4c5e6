import * as api from '../api/devices.ts';
import { formatInstant, formatInstantOrNull } from '../api/http.ts';
import { withNames, type WithNames } from '../identity/actor-names.ts';
import { listDevices, revokeDevice, rotateDevice, type Device } from '../identity/devices.ts';
import { createEnrollmentCode, enrollDevice } from '../identity/enrollment.ts';
import { findInstallationTerms } from '../identity/lease-record.ts';
import { refuseLongerRenewals, refuseOutside } from '../identity/narrowing.ts';
import type { Caller } from '../identity/tokens.ts';
import type { App, Services } from './services.ts';
import { actorOf, registrarOf } from './authentication.ts';

export function addDevices(app: App, { identity, origins }: Services): void {
  const { read } = identity.storage;
  const named = (devices: readonly Device[]): Promise<WithNames<Device, 'revoked_by'>[]> =>
    withNames(read, devices, 'revoked_by');

  app.openapi(api.enrollDevice, async (c) => {
    const { jwk, ...rest } = c.req.valid('json');
    const { jwt, request } = c.get('proof')!;
    const device = await enrollDevice(identity, { ...rest, x: jwk.x }, jwt, request, origins);
    return c.json(serializeDevice({ ...device, revoked_by_name: null }), 201);
  });

  app.openapi(api.rotateDevice, async (c) => {
    const { jwk, proof } = c.req.valid('json');
    const { method, url } = c.req;
    const request = { method, url };
    const successor = { x: jwk.x, proof };
    const device = await rotateDevice(identity, c.get('device')!, successor, request, origins);
    return c.json(serializeDevice({ ...device, revoked_by_name: null }), 201);
  });

  app.openapi(api.createEnrollmentCode, async (c) => {
    const { deployment_id } = c.req.valid('param');
    await refuseAdmitting(identity, c.get('caller')!, deployment_id);
    const code = await createEnrollmentCode(identity, registrarOf(c), deployment_id);
    return c.json({ ...code, expires_at: formatInstant(code.expires_at) }, 201);
  });

  app.openapi(api.listDevices, async (c) => {
    const { deployment_id, ...request } = c.req.valid('query');
    const within = c.get('caller')!.narrowing;
    const page = await listDevices(read, { deployment_id, within }, request);
    return c.json({ ...page, items: (await named(page.items)).map(serializeDevice) }, 200);
  });

  app.openapi(api.revokeDevice, async (c) => {
    const { device_id } = c.req.valid('param');
    const { reason } = c.req.valid('json');
    await refuseOutside(read, c.get('caller')!, { device_id });
    const device = await revokeDevice(identity, actorOf(c), device_id, reason);
    return c.json(serializeDevice((await named([device]))[0]!), 200);
  });
}

/** Rejects a narrowed token that may not issue leases as long as those that the device would renew. */
async function refuseAdmitting(
  { storage, policy }: Services['identity'],
  caller: Caller,
  deployment_id: string,
): Promise<void> {
  if (caller.narrowing === undefined) return;
  await refuseOutside(storage.read, caller, { deployment_id });
  refuseLongerRenewals(caller, policy, await findInstallationTerms(storage.read, deployment_id));
}

function serializeDevice(device: WithNames<Device, 'revoked_by'>): api.Device {
  return {
    ...device,
    enrolled_at: formatInstant(device.enrolled_at),
    first_used_at: formatInstantOrNull(device.first_used_at),
    revoked_at: formatInstantOrNull(device.revoked_at),
  };
}
