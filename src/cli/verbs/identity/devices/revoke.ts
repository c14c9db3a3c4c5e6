import type { revokeDevice } from '../../../../api/devices.ts';
import { DEVICE_COLUMNS } from '../../../devices.ts';
import { showItems } from '../../../show-items.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'refuse a device from now on',
  description:
    'The device gets no leases any more. The one it has goes on until it ends: to end the license itself, revoke the lease with `service-local identity leases revoke`.',
  arguments: { device: { description: 'id of the device' } },
  options: {
    reason: { value: 'text', description: 'why, for the audit log', required: true },
  },
  examples: ['identity devices revoke DEVICE --reason "the machine was sold"'],
  async run(server, { device }, { reason }) {
    const revoked = await server.call<typeof revokeDevice>(
      'post',
      '/identity/devices/{device_id}/revoke',
      { params: { device_id: device }, body: { reason } },
    );
    return { data: revoked, show: (out) => showItems(out, [revoked], DEVICE_COLUMNS) };
  },
});
