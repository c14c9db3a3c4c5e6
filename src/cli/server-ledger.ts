import type { listTrials } from '../api/trials.ts';
import type { LedgerEntry } from '../backtest/ledger/ledger-entry.ts';
import type { AnswerOf } from '../client/route.ts';
import { GENESIS, type ChainHead } from '../base/hash-chain.ts';
import { connect } from './connect.ts';
import type { Context } from './verb.ts';

/** Reads the whole trial ledger of the server in the setting `server_url`, and its head. */
export async function readServerEntries(
  context: Context,
): Promise<{ readonly entries: readonly LedgerEntry[]; readonly head: ChainHead }> {
  const server = await connect(context);
  const entries: LedgerEntry[] = [];
  let head: ChainHead = GENESIS;
  let after: number | null = 0;
  while (after !== null) {
    const page: AnswerOf<typeof listTrials> = await server.call<typeof listTrials>(
      'get',
      '/trials',
      { query: { after_seq: after, limit: 1000 } },
    );
    entries.push(...page.items);
    head = page.head;
    after = page.next_cursor === null ? null : Number(page.next_cursor);
  }
  return { entries, head };
}
