import { html } from 'hono/html';
import type { KeyState, listKeys, retireKey } from '../../api/keys.ts';
import { formatCount } from '../../base/format.ts';
import type { Services } from '../services.ts';
import type { Child, Html } from './html.ts';
import { csrfField, type Content } from './layout.ts';
import { licensePath, LICENSES, moment, licenseTabs, relative } from './license-parts.ts';
import { badge, emptyState, table } from './parts.ts';
import type { Pages, Visit } from './pages.ts';

export function addKeyPages(pages: Pages, { identity }: Services): void {
  const { clock } = identity;

  pages.get(licensePath('keys'), (visit) => show(visit, clock()));

  pages.post(
    `${LICENSES}/keys/:public_key_id/retire`,
    async ({ call, param }) => {
      const params = { public_key_id: param('public_key_id') };
      await call<typeof retireKey>('post', '/identity/keys/{public_key_id}/retire', { params });
      return {
        goTo: licensePath('keys'),
        message: `The key ${params.public_key_id} is permanently retired.`,
      };
    },
    (visit) => show(visit, clock()),
  );
}

async function show(visit: Visit, now: number): Promise<Content> {
  const { items } = await visit.call<typeof listKeys>('get', '/identity/keys', {});
  return {
    title: 'Keys',
    body: html`${licenseTabs('Keys')}
    ${
      items.length === 0
        ? emptyState(
            'There is no signing key yet. Generate one and start the server with it:',
            'service-local identity keys generate --out signing-key.pem',
          )
        : html`${keyTable(visit, items, now)}
            <p class="note">
              To rotate keys, run
              <code>service-local identity keys generate --out next.pem</code> and the command that
              it prints, then restart the server with the new key. The previous key then starts to
              retire; it stays published until the last lease signed with it has ended. The server
              never shows private keys.
            </p>`
    }`,
  };
}

function keyTable(visit: Visit, keys: readonly KeyState[], now: number): Html {
  return table<KeyState>(
    'Signing keys',
    [
      {
        title: 'Key',
        isHeader: true,
        cell: ({ public_key_id }) => html`<code>${public_key_id}</code>`,
      },
      { title: 'State', cell: ({ status }) => statusBadge(status) },
      { title: 'Active since', cell: ({ activated_at }) => relative(activated_at, now) },
      {
        title: 'Leases in use',
        isNumber: true,
        cell: ({ outstanding_leases }) => formatCount(outstanding_leases),
      },
      { title: 'May be retired', cell: (key) => retirement(visit, key, now) },
    ],
    keys,
  );
}

function statusBadge(status: KeyState['status']): Html {
  if (status === 'active') return badge('good', 'active');
  if (status === 'pending') return badge('warning', 'not in the signed keyset');
  return status === 'retiring' ? badge('warning', 'retiring') : badge('neutral', 'retired');
}

function retirement(
  { session }: Visit,
  { public_key_id, status, retired_at, retirable_at }: KeyState,
  now: number,
): Child {
  if (status === 'active') return 'not while it is active';
  if (status === 'pending') return 'does not sign yet';
  if (retired_at !== null) return html`retired ${moment(retired_at, now)}`;
  if (Date.parse(retirable_at!) > now) return html`from ${moment(retirable_at!, now)}`;
  return html`<details>
    <summary>Now…</summary>
    <form method="post" class="inline" action="${licensePath('keys', public_key_id, 'retire')}">
      ${csrfField(session)}
      <button class="danger">Retire permanently</button>
    </form>
  </details>`;
}
