import { html } from 'hono/html';
import type { searchAudit, verifyAudit } from '../../api/administrators.ts';
import { ServiceError } from '../../base/errors.ts';
import { formatActor, formatCount } from '../../base/format.ts';
import { CHAIN_FAULTS } from '../../base/hash-chain.ts';
import type { Services } from '../services.ts';
import type { Content } from './layout.ts';
import { AUDIT, auditTable } from './license-parts.ts';
import { badge, emptyState, facts, field } from './parts.ts';
import type { Pages, Visit } from './pages.ts';

export function addAuditPages(pages: Pages, { identity }: Services): void {
  pages.get(AUDIT, (visit) => show(visit, identity.clock()));
  pages.get(`${AUDIT}/verification`, verify);
}

async function show({ call, query }: Visit, now: number): Promise<Content> {
  const words = { actor: query('actor'), action: query('action'), target: query('target') };
  const span = { from: query('from'), to: query('to') };
  const before = query('before');
  const { items, next_cursor, head } = await call<typeof searchAudit>(
    'get',
    '/identity/audit/search',
    {
      query: {
        ...words,
        from: instantOf(span.from),
        to: instantOf(span.to),
        before_seq: before,
        limit: 50,
      },
    },
  );
  const filter = Object.entries({ ...words, ...span }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  const next = new URLSearchParams([...filter, ['before', next_cursor ?? '']]);
  return {
    title: 'Audit',
    body: html`<div class="heading">
        <p class="note">${formatCount(head.seq)} entries, newest first.</p>
        <a class="button" href="${AUDIT}/verification">Verify the chain</a>
      </div>
      <form method="get" action="${AUDIT}" class="filter many" role="search">
        ${field('Actor', 'actor', { value: words.actor ?? '', maxlength: 200, placeholder: 'administrator:ID', list: 'actors' })}
        ${field('Action', 'action', { value: words.action ?? '', maxlength: 200, placeholder: 'admin.identity.license.revoke', list: 'actions' })}
        ${field('Target', 'target', { value: words.target ?? '', maxlength: 200, placeholder: 'deployment:ID' })}
        ${field('From (UTC)', 'from', { type: 'datetime-local', value: span.from ?? '' })}
        ${field('Until (UTC)', 'to', { type: 'datetime-local', value: span.to ?? '' })}
        <button>Filter</button>
        ${options(
          'actors',
          items.map(({ actor, actor_name }) => [actor, formatActor(actor, actor_name)]),
        )}
        ${options(
          'actions',
          items.map(({ action }) => [action, action]),
        )}
      </form>
      ${
        items.length > 0
          ? auditTable('Audit log', items, now)
          : filter.length > 0 || before !== undefined
            ? html`<p>No entry matches the filter. <a href="${AUDIT}">Show all entries.</a></p>`
            : emptyState(
                'The audit log is empty. To list it from the command line:',
                'service-local identity audit list',
              )
      }
      <nav class="pager" aria-label="Pages">
        ${
          before !== undefined &&
          html`<a class="button" href="${AUDIT}?${new URLSearchParams(filter)}">Newest</a>`
        }
        ${next_cursor !== null && html`<a class="button" href="${AUDIT}?${next}">Older</a>`}
      </nav>`,
  };
}

/** Suggestions for an input: `value` is filled in, `label` is displayed beside it. */
function options(id: string, values: readonly (readonly [value: string, label: string])[]) {
  return html`<datalist id="${id}">
    ${[...new Map(values)].map(([value, label]) => html`<option value="${value}">${label}</option>`)}
  </datalist>`;
}

/** Reads the value of a `datetime-local` input, such as `2026-01-02T03:04`, as UTC. */
function instantOf(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const ms = Date.parse(text.endsWith('Z') ? text : `${text}Z`);
  if (!Number.isNaN(ms)) return new Date(ms).toISOString();
  throw new ServiceError('invalid_request', `'${text}' is not a time`, {
    remedy: 'Write it as 2026-01-02T03:04, in UTC.',
  });
}

async function verify({ call }: Visit): Promise<Content> {
  const { verified, head, fault } = await call<typeof verifyAudit>(
    'get',
    '/identity/audit/verification',
    {},
  );
  return {
    title: 'Chain of the audit log',
    body: html`<p><a href="${AUDIT}">Back to the log</a></p>
      ${
        fault === null
          ? html`<p class="message">
              The chain is intact: all ${formatCount(verified)} entries are unaltered.
            </p>`
          : html`<p class="message failure" role="alert">
              Entry ${fault.seq} ${CHAIN_FAULTS[fault.fault]}. Find out who can write to the
              database, and restore the database from a backup.
            </p>`
      }
      ${facts(
        ['Chain', fault === null ? badge('good', 'intact') : badge('bad', 'broken')],
        ['Verified entries', formatCount(verified)],
        ['Head', html`<code>${head.seq}:${head.hash}</code>`],
      )}
      <p class="note">
        Anyone with write access to the database could recompute the whole chain. Store the head
        where they cannot change it, and use it to verify the log without trusting this server:
      </p>
      <pre><code>service-local identity audit verify --head ${head.seq}:${head.hash}</code></pre>`,
  };
}
