import type { listDevices } from '../../../../api/devices.ts';
import { listAnswer } from '../../../list-answer.ts';
import { DEVICE_COLUMNS } from '../../../devices.ts';
import { defineServerVerb } from '../../../server-verb.ts';

export const verb = defineServerVerb({
  summary: 'list the devices',
  options: { deployment: { value: 'id', description: 'only devices of this installation' } },
  examples: ['identity devices list', 'identity devices list --deployment acme-tokyo --json'],
  run: (server, _args, { deployment }) =>
    listAnswer<typeof listDevices>(server, 'devices', '/identity/devices', DEVICE_COLUMNS, {
      query: { deployment_id: deployment },
    }),
});
