/** Building blocks of the license pages. */
import { html } from 'hono/html';
import type { AuditEntry } from '../../api/administrators.ts';
import type { Device } from '../../api/devices.ts';
import type { LeaseRecord } from '../../api/leases.ts';
import type { License } from '../../api/licenses.ts';
import { ServiceError } from '../../base/errors.ts';
import { formatFacts, formatSpan } from '../../base/format.ts';
import { parseSeconds } from '../../base/seconds.ts';
import type { Child, Html } from './html.ts';
import { badge, table, time, who } from './parts.ts';

export const LICENSES = '/identity/license';

/** The path of a page below `LICENSES`: `licensePath('leases', id, 'revoke')`. */
export function licensePath(...segments: readonly string[]): string {
  return [LICENSES, ...segments.map(encodeURIComponent)].join('/');
}

const PARTS = [
  { title: 'Installations', path: LICENSES },
  { title: 'Issue', path: licensePath('issue') },
  { title: 'Devices', path: licensePath('devices') },
  { title: 'Keys', path: licensePath('keys') },
  { title: 'Customers', path: licensePath('customers') },
] as const;

/** Navigation between the license pages; `open` is the current one. */
export function licenseTabs(open: (typeof PARTS)[number]['title']): Html {
  return html`<nav aria-label="Licenses" class="parts">
    <ul>
      ${PARTS.map(({ title, path }) => html`<li><a href="${path}" ${title === open && html` aria-current="page"`}>${title}</a></li>`)}
    </ul>
  </nav>`;
}

export function stateBadge(state: License['state'] | LeaseRecord['state']): Html {
  if (state === 'valid') return badge('good', 'valid');
  if (state === 'grace') return badge('warning', 'grace');
  if (state === 'none') return badge('neutral', 'no lease');
  return badge(state === 'revoked' ? 'bad' : 'neutral', state);
}

/** Shows `in 3 days` or `2 hours ago`, with the exact time as a tooltip. */
export function relative(instant: string, now: number): Html {
  const exact = instant.replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC');
  return html`<time datetime="${instant}" title="${exact}">${distance(instant, now)}</time>`;
}

/** The exact time and its distance from now. */
export function moment(instant: string, now: number): Html {
  return html`${time(instant)} <span class="aside">${distance(instant, now)}</span>`;
}

function distance(instant: string, now: number): string {
  const ms = Date.parse(instant) - now;
  if (Math.abs(ms) < 1000) return 'now';
  return ms > 0 ? `in ${formatSpan(ms)}` : `${formatSpan(-ms)} ago`;
}

/** Time until the lease expires; once it has expired, until its grace period ends. */
export function timeLeft(
  lease: Pick<LeaseRecord, 'expires_at' | 'grace_ends_at'>,
  now: number,
): Html {
  if (Date.parse(lease.expires_at) > now) return relative(lease.expires_at, now);
  return relative(lease.grace_ends_at, now);
}

export function installationLink(id: string): Html {
  return html`<a href="${licensePath('deployments', id)}">${id}</a>`;
}

export function leaseLink(id: string): Html {
  return html`<a class="id" href="${licensePath('leases', id)}">${id}</a>`;
}

export function leaseTable(label: string, leases: readonly LeaseRecord[], now: number): Html {
  return table<LeaseRecord>(
    label,
    [
      { title: 'Lease', isHeader: true, cell: ({ lease_id }) => leaseLink(lease_id) },
      { title: 'State', cell: ({ state }) => stateBadge(state) },
      { title: 'Issued', cell: ({ issued_at }) => relative(issued_at, now) },
      { title: 'Expires', cell: ({ expires_at }) => relative(expires_at, now) },
      { title: 'Grace ends', cell: ({ grace_ends_at }) => relative(grace_ends_at, now) },
      { title: 'Entitlements', cell: ({ entitlements }) => entitlements.join(', ') || 'nothing' },
      {
        title: 'Issued to',
        cell: ({ device_id }) => (device_id ? abbreviatedId(device_id) : 'a person'),
      },
    ],
    leases,
  );
}

/** The first 12 characters of a long id, with the whole id as a tooltip. */
export function abbreviatedId(id: string): Html {
  return id.length <= 16
    ? html`<code>${id}</code>`
    : html`<code title="${id}">${id.slice(0, 12)}…</code>`;
}

export function deviceState({ revoked_at, first_used_at }: Device): Html {
  if (revoked_at !== null) return badge('bad', 'revoked');
  return first_used_at === null ? badge('neutral', 'not used yet') : badge('good', 'in use');
}

export const AUDIT = '/console/audit';

/** Path of the audit log, filtered by a target such as `lease:ID`. */
export function auditPath(target: string): string {
  return `${AUDIT}?${new URLSearchParams({ target })}`;
}

export function auditTable(label: string, entries: readonly AuditEntry[], now: number): Html {
  if (entries.length === 0) return html`<p class="note">There are no entries yet.</p>`;
  return table<AuditEntry>(
    label,
    [
      { title: 'No.', isNumber: true, cell: ({ seq }) => seq },
      { title: 'Recorded', cell: ({ recorded_at }) => relativeOrText(recorded_at, now) },
      { title: 'Actor', cell: ({ actor, actor_name }) => who(actor, actor_name) },
      {
        title: 'Action',
        isHeader: true,
        cell: ({ action, details }) => html`${action}${detailsOf(details)}`,
      },
      { title: 'Target', cell: ({ target }) => html`<span class="id">${target}</span>` },
    ],
    entries,
  );
}

/** An entry that was tampered with may have any text as its time. */
function relativeOrText(instant: string, now: number): Child {
  return Number.isNaN(Date.parse(instant)) ? instant : relative(instant, now);
}

function detailsOf(details: AuditEntry['details']): Html | false {
  const facts = formatFacts(details);
  return facts.length > 0 && html`<span class="details">${facts.join(' · ')}</span>`;
}

/**
 * Reads a duration such as `7d`; undefined if the field is empty.
 * @throws ServiceError `invalid_request`
 */
export function parseDuration(text: string, what: string): number | undefined {
  if (text.trim() === '') return undefined;
  try {
    return parseSeconds(text.trim());
  } catch (error) {
    throw new ServiceError('invalid_request', `'${text.trim()}' is not a duration for ${what}`, {
      remedy: 'Write it as 7d, 12h, 30m or 90s.',
      cause: error,
    });
  }
}
