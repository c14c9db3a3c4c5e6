import { html } from 'hono/html';
import type { Device, listDevices } from '../../api/devices.ts';
import type { Services } from '../services.ts';
import type { Content } from './layout.ts';
import {
  licensePath,
  installationLink,
  deviceState,
  licenseTabs,
  relative,
} from './license-parts.ts';
import { emptyState, field, pager, table } from './parts.ts';
import type { Pages, Visit } from './pages.ts';

export function addDevicePages(pages: Pages, { identity }: Services): void {
  pages.get(licensePath('devices'), (visit) => show(visit, identity.clock()));
}

async function show({ call, query }: Visit, now: number): Promise<Content> {
  const deployment_id = query('deployment_id');
  const cursor = query('cursor');
  const { items, next_cursor } = await call<typeof listDevices>('get', '/identity/devices', {
    query: { deployment_id, cursor, limit: 50 },
  });
  return {
    title: 'Devices',
    body: html`${licenseTabs('Devices')}
      <p class="note">
        Machines that renew their leases themselves. Create enrollment codes and revoke devices on
        the page of the installation.
      </p>
      ${
        (items.length > 0 || deployment_id !== undefined) &&
        html`<form method="get" action="${licensePath('devices')}" class="filter" role="search">
          ${field('Installation', 'deployment_id', { value: deployment_id ?? '', maxlength: 128, autocomplete: 'off' })}
          <button>Filter</button>
        </form>`
      }
      ${
        items.length === 0
          ? emptyState(
              'No device is enrolled. Create an enrollment code on the page of the installation or from the command line:',
              'service-local identity devices enroll-code --deployment ID',
            )
          : html`${table<Device>(
              'Devices',
              [
                { title: 'Name', isHeader: true, cell: ({ name }) => name },
                { title: 'Installation', cell: (device) => installationLink(device.deployment_id) },
                { title: 'State', cell: deviceState },
                { title: 'Enrolled', cell: ({ enrolled_at }) => relative(enrolled_at, now) },
                { title: 'Device', cell: ({ device_id }) => html`<code>${device_id}</code>` },
              ],
              items,
            )}
            ${pager(licensePath('devices'), { deployment_id, cursor }, next_cursor)}`
      }`,
  };
}
