import type { listAudit } from '../../../../api/administrators.ts';
import type { Client } from '../../../../client/client.ts';
import { ServiceError } from '../../../../base/errors.ts';
import { formatCount } from '../../../../base/format.ts';
import {
  CHAIN_FAULTS,
  endFault,
  GENESIS,
  type ChainFault,
  type ChainHead,
} from '../../../../base/hash-chain.ts';
import { NEEDS_ADMIN } from '../../../scopes.ts';
import { defineServerVerb } from '../../../server-verb.ts';
import type { Context } from '../../../verb.ts';

export const verb = defineServerVerb({
  summary: 'verify that the audit log was not tampered with',
  description: `Reads the whole log and computes its hash chain on this machine. If an entry was altered, removed or added, names the first bad entry and exits with 1. An attacker with write access to the database could compute a new chain. To detect this, store the printed head in a safe place and pass it with --head the next time. ${NEEDS_ADMIN}`,
  options: {
    head: {
      value: 'seq:hash',
      description: 'head that an earlier verification printed',
      parse: parseHead,
    },
  },
  examples: [
    'identity audit verify',
    `identity audit verify --head 42:${'0123456789abcdef'.repeat(4)}`,
  ],
  async run(server, _args, { head: noted }, context) {
    const { last, fault } = await verifyLog(server, noted, context);
    const head = `${last.seq}:${last.hash}`;
    return {
      data: { verified: last.seq, head, fault: fault ?? null },
      show(out) {
        out.line(`Unchanged entries: ${formatCount(last.seq)}`);
        if (!fault) out.line(`Head: ${head}`);
      },
      failure:
        fault &&
        new ServiceError('audit_tampered', `entry ${fault.seq} ${WHAT[fault.fault]}`, {
          reason: fault.fault,
          remedy:
            fault.fault === 'not_as_noted'
              ? 'Check that --head is correct. If it is, the log was replaced by another one.'
              : 'Find out who can write to the database, and restore it from a backup.',
        }),
    };
  },
});

/** `not_as_noted`: the chain is intact, but differs from the one of the given head. */
interface Fault {
  readonly seq: number;
  readonly fault: ChainFault['fault'] | 'not_as_noted';
}

const WHAT: Readonly<Record<Fault['fault'], string>> = {
  ...CHAIN_FAULTS,
  not_as_noted: 'differs from the entry in --head',
};

/** @returns the last valid entry, and the fault of the next one. */
async function verifyLog(
  server: Client,
  noted: ChainHead | undefined,
  { progress }: Context,
): Promise<{ readonly last: ChainHead; readonly fault?: Fault }> {
  const { verifyAudit } = await import('../../../../identity/audit.ts');
  let last = GENESIS;
  let bar: ReturnType<typeof progress> | undefined;
  try {
    for (;;) {
      const query = { after_seq: last.seq, limit: 1000 };
      const page = await server.call<typeof listAudit>('get', '/identity/audit', { query });
      bar ??= progress('audit log', page.head.seq);
      for (const entry of page.items) {
        const next = verifyAudit(last, [entry]);
        if ('fault' in next) return { last, fault: next };
        if (next.seq === noted?.seq && next.hash !== noted.hash) {
          return { last, fault: { seq: next.seq, fault: 'not_as_noted' } };
        }
        last = next;
      }
      bar.update(last.seq);
      if (page.next_cursor !== null && page.items.length > 0) continue;
      const fault = endFault(last, page.head) ?? missingUpTo(last, noted ?? GENESIS);
      return fault ? { last, fault } : { last };
    }
  } finally {
    bar?.stop();
  }
}

function missingUpTo(last: ChainHead, noted: ChainHead): ChainFault | undefined {
  return last.seq < noted.seq ? { seq: last.seq + 1, fault: 'missing' } : undefined;
}

function parseHead(text: string): ChainHead {
  const [, seq, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (hash !== undefined) return { seq: Number(seq), hash };
  throw new ServiceError('usage', `'${text}' is not the head of a log`, {
    remedy: 'Use the form SEQ:HASH that `identity audit verify` prints.',
  });
}
