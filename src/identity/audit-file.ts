/** Exported audit logs: the output of `identity audit list --after SEQ --json`. */
import * as z from 'zod';
import { ServiceError } from '../base/errors.ts';
import type { Db } from '../storage/tables.ts';
import { auditHead, readAudit, verifyAudit, type AuditEntry, type AuditFault } from './audit.ts';

const HASH = z.string().regex(/^[0-9a-f]{64}$/);

const FILE = z.object({
  entries: z.array(
    z.object({
      seq: z.int().positive(),
      recorded_at: z.iso.datetime(),
      actor: z.string(),
      action: z.string(),
      target: z.string(),
      details: z.record(z.string(), z.unknown()),
      prev_hash: HASH,
      hash: HASH,
    }),
  ),
});

/**
 * Reads an exported audit log.
 * @param name of the file in messages.
 * @throws ServiceError `invalid_data`
 */
export function parseAuditFile(text: string, name: string): readonly AuditEntry[] {
  const { success, data, error } = FILE.safeParse(parseJson(text));
  if (success && data.entries.length > 0) return data.entries;
  const [issue] = error?.issues ?? [];
  const where = issue === undefined ? 'it has no entries' : `/${issue.path.join('/')}`;
  throw new ServiceError('invalid_data', `${name} is not an exported audit log: ${where}`, {
    remedy: 'Write it with `service-local identity audit list --after 0 --json`.',
  });
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/**
 * Returns the entries that follow those in the database.
 * @param name of the file in messages.
 * @throws ServiceError `audit_tampered` naming the first entry that does not continue the log of the
 *   database.
 */
export async function newerEntries(
  db: Db,
  entries: readonly AuditEntry[],
  name: string,
): Promise<readonly AuditEntry[]> {
  const head = await auditHead(db);
  const known = entries.findLast(({ seq }) => seq <= head.seq);
  if (known !== undefined) {
    const { entries: own } = await readAudit(db, known.seq - 1, 1);
    if (own[0]?.hash !== known.hash) throw notContinued(name, known.seq, 'other_log');
    // The entries up to this one are those of the database, if the file's own chain holds.
    const first = entries[0]!;
    const fault = verifyAudit({ seq: first.seq - 1, hash: first.prev_hash }, entries);
    if ('fault' in fault) throw notContinued(name, fault.seq, fault.fault);
  }
  const newer = entries.filter(({ seq }) => seq > head.seq);
  const verified = verifyAudit(head, newer);
  if ('fault' in verified) throw notContinued(name, verified.seq, verified.fault);
  return newer;
}

const WHAT: Readonly<Record<AuditFault['fault'] | 'other_log', string>> = {
  missing: 'is missing',
  altered: 'has been altered',
  not_linked: 'does not follow from the entry before it',
  beyond_head: 'is beyond the end of the log',
  other_log: 'differs from that of the backup',
};

function notContinued(name: string, seq: number, reason: keyof typeof WHAT): ServiceError {
  return new ServiceError('audit_tampered', `${name}: entry ${seq} ${WHAT[reason]}`, {
    reason,
    remedy:
      'Nothing was restored. Use an export of the same server, with all entries after those of the backup.',
  });
}
