import type { listDevices } from '../../../../api/devices.ts';
import { connect } from '../../../connect.ts';
import { DEVICE_COLUMNS } from '../../../devices.ts';
import { showItems } from '../../../show-items.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the devices',
  options: { deployment: { value: 'id', description: 'only those of this installation' } },
  settings: ['server_url'],
  examples: ['identity devices list', 'identity devices list --deployment acme-tokyo --json'],
  async run(context, _args, { deployment }) {
    const server = await connect(context);
    const list = server.items<typeof listDevices>('get', '/identity/devices', {
      query: { deployment_id: deployment },
    });
    const devices = await Array.fromAsync(list);
    return { data: { devices }, show: (out) => showItems(out, devices, DEVICE_COLUMNS) };
  },
});
