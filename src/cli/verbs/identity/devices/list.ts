import type { listDevices } from '../../../../api/devices.ts';
import { listAnswer } from '../../../list-answer.ts';
import { DEVICE_COLUMNS } from '../../../devices.ts';
import { defineVerb } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'list the devices',
  options: { deployment: { value: 'id', description: 'only those of this installation' } },
  settings: ['server_url'],
  examples: ['identity devices list', 'identity devices list --deployment acme-tokyo --json'],
  run: (context, _args, { deployment }) =>
    listAnswer<typeof listDevices>(context, 'devices', '/identity/devices', DEVICE_COLUMNS, {
      query: { deployment_id: deployment },
    }),
});
