import type { AuditEntry, listAudit } from '../../api/administrators.ts';
import { ServiceError } from '../../errors.ts';
import { NO_VALUE } from '../../format.ts';
import { connect } from '../connect.ts';
import { parseCount } from '../count.ts';
import { showItems } from '../items.ts';
import { NEEDS_ADMIN } from '../scopes.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  description: `The last entries, or all after a given one; the oldest first. ${NEEDS_ADMIN}`,
  options: {
    last: { value: 'count', description: 'how many (default: 50)', parse: parseCount },
    after: { value: 'seq', description: 'all entries after this one', parse: parseCount },
  },
  settings: ['server_url'],
  examples: [
    'identity audit list --last 10',
    'identity audit list --after 0 --json | jq \'.entries[] | select(.action | endswith("revoke"))\'',
  ],
  async run(context, _args, { last, after }) {
    if (last !== undefined && after !== undefined) {
      throw new ServiceError('usage', '--last and --after exclude each other');
    }
    const server = await connect(context);
    const read = (after_seq: number, limit: number) =>
      server.call<typeof listAudit>('get', '/identity/audit', { query: { after_seq, limit } });
    let from: number | null = after ?? Math.max(0, (await read(0, 1)).head.seq - (last ?? 50));
    const entries: AuditEntry[] = [];
    while (from !== null) {
      const { items, next_cursor } = await read(from, 1000);
      entries.push(...items);
      from = next_cursor === null ? null : Number(next_cursor);
    }
    return {
      data: { entries },
      show: (out) =>
        showItems(out, entries, {
          seq: ({ seq }) => String(seq),
          time: ({ recorded_at }) => recorded_at,
          actor: ({ actor }) => actor,
          action: ({ action }) => action,
          target: ({ target }) => target,
          details: ({ details }) => factsOf(details).join(' ') || NO_VALUE,
        }),
    };
  },
});

/** `deployment_id=acme-tokyo before.ends_at=…`; with `--json` it is exact. */
function factsOf(details: object, prefix = ''): string[] {
  return Object.entries(details).flatMap(([key, value]: [string, unknown]) => {
    const name = `${prefix}${key}`;
    if (Array.isArray(value)) return [`${name}=${value.join(',')}`];
    if (typeof value === 'object' && value !== null) return factsOf(value, `${name}.`);
    return [`${name}=${/\s/.test(String(value)) ? JSON.stringify(value) : String(value)}`];
  });
}
