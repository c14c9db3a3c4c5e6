import type { revokeDevice } from '../../../../api/devices.ts';
import { DEVICE_COLUMNS } from '../../../devices.ts';
import { showItems } from '../../../show-items.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'revoke a device',
  description:
    'The device can no longer renew its lease, but its current lease stays valid until its end. To revoke the license itself, use `service-local identity leases revoke`.',
  arguments: { device: { description: 'id of the device' } },
  options: {
    reason: { value: 'text', description: 'reason for the audit log', required: true },
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
