/** Exported audit logs: the output of `identity audit list --after SEQ --json`. */
import * as z from 'zod';
import { ServiceError } from '../base/errors.ts';
import { CHAIN_FAULTS, type ChainFault } from '../base/hash-chain.ts';
import type { Db } from '../storage/tables.ts';
import { auditHead, readAudit, verifyAudit, type AuditEntry } from './audit.ts';

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
 * @param name of the file, for messages.
 * @throws ServiceError `invalid_data`
 */
export function parseAuditFile(text: string, name: string): readonly AuditEntry[] {
  const { success, data, error } = FILE.safeParse(parseJson(text));
  if (success && data.entries.length > 0) return data.entries;
  const [issue] = error?.issues ?? [];
  const where =
    issue === undefined ? 'it has no entries' : `invalid value at /${issue.path.join('/')}`;
  throw new ServiceError('invalid_data', `${name} is not an exported audit log: ${where}`, {
    remedy: 'Export it with `service-local identity audit list --after 0 --json`.',
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
 * @param name of the file, for messages.
 * @throws ServiceError `audit_tampered` if an entry does not continue the log in the database.
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
    if (own[0]?.hash !== known.hash) {
      throw notContinued(name, known.seq, 'other_log', 'differs from the entry in the backup');
    }
    // If the chain of the file is valid, all entries before `known` equal those in the database.
    const first = entries[0]!;
    const fault = verifyAudit({ seq: first.seq - 1, hash: first.prev_hash }, entries);
    if ('fault' in fault) throw faultyFile(name, fault);
  }
  const newer = entries.filter(({ seq }) => seq > head.seq);
  const verified = verifyAudit(head, newer);
  if ('fault' in verified) throw faultyFile(name, verified);
  return newer;
}

function faultyFile(name: string, { seq, fault }: ChainFault): ServiceError {
  return notContinued(name, seq, fault, CHAIN_FAULTS[fault]);
}

function notContinued(name: string, seq: number, reason: string, what: string): ServiceError {
  return new ServiceError('audit_tampered', `${name}: entry ${seq} ${what}`, {
    reason,
    remedy:
      'Nothing was restored. Use an export of the same server that includes all entries after those of the backup.',
  });
}
