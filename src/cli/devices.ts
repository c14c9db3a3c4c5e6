import type { Device } from '../api/devices.ts';
import { NO_VALUE } from '../base/format.ts';
import type { Columns } from './show-items.ts';

export const DEVICE_COLUMNS: Columns<Device> = {
  device: ({ device_id }) => device_id,
  installation: ({ deployment_id }) => deployment_id,
  name: ({ name }) => name,
  enrolled: ({ enrolled_at }) => enrolled_at,
  used: ({ first_used_at }) => (first_used_at === null ? 'not yet' : 'yes'),
  revoked: ({ revoked_at, revoked_reason }) =>
    revoked_at === null ? NO_VALUE : `${revoked_at} ${revoked_reason}`,
};
