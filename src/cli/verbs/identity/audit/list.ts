import type { AuditEntry, listAudit, searchAudit } from '../../../../api/administrators.ts';
import type { Client } from '../../../../client/client.ts';
import type { RequestOf } from '../../../../client/route.ts';
import { ServiceError } from '../../../../base/errors.ts';
import { formatActor, formatFacts, NO_VALUE } from '../../../../base/format.ts';
import { connect } from '../../../connect.ts';
import { parseCount } from '../../../parse-count.ts';
import { showItems } from '../../../show-items.ts';
import { NEEDS_ADMIN } from '../../../scopes.ts';
import { defineVerb, type Answer } from '../../../verb.ts';

export const verb = defineVerb({
  summary: 'show the audit log',
  description: `Shows the last entries, or all entries after a given one, oldest first. ${NEEDS_ADMIN}`,
  options: {
    last: { value: 'count', description: 'number of entries (default: 50)', parse: parseCount },
    after: { value: 'seq', description: 'all entries after this one', parse: parseCount },
    actor: { value: 'who', description: 'only actions of this actor, such as administrator:ID' },
    action: {
      value: 'name',
      description: 'only this action, such as admin.identity.license.revoke',
    },
    target: { value: 'what', description: 'only actions on this target, such as deployment:ID' },
    from: {
      value: 'time',
      description: 'only entries from this time on, such as 2026-01-02T03:04:05Z',
    },
    to: { value: 'time', description: 'only entries before this time' },
  },
  settings: ['server_url'],
  examples: [
    'identity audit list --last 10',
    'identity audit list --action admin.identity.license.revoke --from 2026-01-01T00:00:00Z',
    'identity audit list --after 0 --json | jq \'.entries[] | select(.action | endswith("revoke"))\'',
  ],
  async run(context, _args, { last, after, ...filter }) {
    if (last !== undefined && after !== undefined) {
      throw new ServiceError('usage', '--last and --after exclude each other');
    }
    const isFiltered = Object.values(filter).some((value) => value !== undefined);
    if (isFiltered && after !== undefined) {
      throw new ServiceError(
        'usage',
        '--after lists all entries and takes no filter; use --from instead',
      );
    }
    const server = await connect(context);
    if (isFiltered) return answerOf(await search(server, filter, last ?? 50));
    const read = (after_seq: number, limit: number) =>
      server.call<typeof listAudit>('get', '/identity/audit', { query: { after_seq, limit } });
    let from: number | null = after ?? Math.max(0, (await read(0, 1)).head.seq - (last ?? 50));
    const entries: AuditEntry[] = [];
    while (from !== null) {
      const { items, next_cursor } = await read(from, 1000);
      entries.push(...items);
      from = next_cursor === null ? null : Number(next_cursor);
    }
    return answerOf(entries);
  },
});

type Filter = Omit<NonNullable<RequestOf<typeof searchAudit>['query']>, 'limit' | 'before_seq'>;

/** The last matching entries, oldest first. */
async function search(server: Client, filter: Filter, last: number): Promise<AuditEntry[]> {
  const found: AuditEntry[] = [];
  let before_seq: number | undefined;
  do {
    const limit = Math.min(1000, last - found.length);
    if (limit <= 0) break;
    const query = { ...filter, before_seq, limit };
    const path = '/identity/audit/search';
    const page = await server.call<typeof searchAudit>('get', path, { query });
    found.push(...page.items);
    before_seq = page.next_cursor === null ? undefined : Number(page.next_cursor);
  } while (before_seq !== undefined);
  return found.toReversed();
}

function answerOf(entries: readonly AuditEntry[]): Answer {
  return {
    data: { entries },
    show: (out) =>
      showItems(out, entries, {
        seq: ({ seq }) => String(seq),
        time: ({ recorded_at }) => recorded_at,
        actor: ({ actor, actor_name }) => formatActor(actor, actor_name),
        action: ({ action }) => action,
        target: ({ target }) => target,
        details: ({ details }) => formatFacts(details).join(' ') || NO_VALUE,
      }),
  };
}
