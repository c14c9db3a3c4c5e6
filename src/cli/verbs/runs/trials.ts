import type { LedgerEntry, LedgerFault } from '../../../backtest/ledger/ledger-entry.ts';
import type { TrialGroup } from '../../../backtest/ledger/trial-groups.ts';
import { ServiceError } from '../../../base/errors.ts';
import { formatCount, formatCountOf, formatRatio, NO_VALUE } from '../../../base/format.ts';
import { CHAIN_FAULTS, endFault, GENESIS, type ChainHead } from '../../../base/hash-chain.ts';
import { formatTime } from '../../../market/bar-time.ts';
import { formatSpacing } from '../../../market/timeframe.ts';
import type { Output } from '../../output.ts';
import { defineVerb, type Context } from '../../verb.ts';

export const verb = defineVerb({
  summary: 'show how many trials were run on which data',
  description:
    'Lists the trials that backtests and sweeps recorded on this machine, by strategy and data. A ' +
    'repeated trial counts once. The best Sharpe ratio is annualized; that of a shorter window is ' +
    'multiplied by the square root of its share of the whole window. With --verify, names each altered or missing entry. On this ' +
    'machine, it cannot detect a deleted ledger or missing last entries. With --server, it can; that ' +
    'ledger counts the backtests of all users and agents.',
  options: {
    server: { description: 'list the trials of the server instead' },
    verify: { description: 'check the hash chain; exit code 1 if an entry is altered or missing' },
  },
  settings: ['server_url'],
  examples: [
    'runs trials',
    'runs trials --verify',
    'runs trials --json | jq .groups[].trials',
    'runs trials --server --verify',
  ],
  async run(context, _args, { server, verify }) {
    const { groupTrials } = await import('../../../backtest/ledger/trial-groups.ts');
    const ledger = server ? await readServerLedger(context) : await readOwnLedger(context);
    const { place, entries, last, faults } = ledger;
    const groups = groupTrials(entries);
    const head = `${last.seq}:${last.hash}`;
    return {
      data: {
        schema: 'service-local/trial-ledger/v1',
        ledger: place,
        head,
        entries: entries.length,
        groups,
        ...(verify && { faults }),
      },
      show(out) {
        showGroups(out, groups);
        if (!verify) return;
        out.line();
        out.line(`Entries: ${formatCount(entries.length)}, head ${head}`);
        for (const fault of faults) out.line(`${formatFault(fault)}.`);
      },
      failure: verify ? tampered(ledger) : undefined,
    };
  },
});

interface Ledger {
  /** Path of the file, or URL of the server. */
  readonly place: string;
  readonly entries: readonly LedgerEntry[];
  readonly last: ChainHead;
  readonly faults: readonly LedgerFault[];
}

async function readOwnLedger({ settings }: Context): Promise<Ledger> {
  const { TrialLedger } = await import('../../../backtest/ledger/trial-ledger.ts');
  const ledger = new TrialLedger(settings.home);
  return { place: ledger.path, entries: ledger.entries(), ...ledger.verify() };
}

/** Reads the whole ledger and verifies it here, so that the server need not be trusted. */
async function readServerLedger(context: Context): Promise<Ledger> {
  const { readServerEntries } = await import('../../server-ledger.ts');
  const { verifyEntries } = await import('../../../backtest/ledger/ledger-entry.ts');
  const { entries, head } = await readServerEntries(context);
  const { last, faults } = verifyEntries(entries, GENESIS);
  const cut = endFault(last, head);
  const place = context.settings.server_url;
  return { place, entries, last, faults: cut === undefined ? faults : [...faults, cut] };
}

function showGroups(out: Output, groups: readonly TrialGroup[]): void {
  if (groups.length === 0) {
    out.line('No trial is recorded yet. `service-local backtest bot.yaml` records one.');
    return;
  }
  const right = { align: 'right' } as const;
  out.table(
    [
      { title: 'strategy' },
      { title: 'symbols' },
      { title: 'bars' },
      { title: 'window' },
      { title: 'trials', ...right },
      { title: 'best Sharpe over window', ...right },
      { title: 'holdout opened', ...right },
    ],
    groups.map((group) => [
      group.family,
      group.symbols.join(', '),
      formatSpacing(group.bar_ms),
      [group.from, group.to].map((time) => formatTime(Date.parse(time))).join(' to '),
      formatCount(group.trials),
      group.best_sharpe === null ? NO_VALUE : formatRatio(group.best_sharpe),
      formatCount(group.holdout_openings),
    ]),
  );
}

function tampered({ place, faults }: Ledger): ServiceError | undefined {
  const [first] = faults;
  if (first === undefined) return undefined;
  const rest = faults.length === 1 ? '' : ` and ${formatCountOf(faults.length - 1, 'other fault')}`;
  return new ServiceError('trials_tampered', `${place}: ${formatFault(first)}${rest}`, {
    reason: first.fault,
    remedy: 'Find out who can write to the ledger. Its counts are too low if entries are missing.',
  });
}

function formatFault({ seq, through = seq, fault }: LedgerFault): string {
  return through > seq
    ? `entries ${seq} to ${through} are missing`
    : `entry ${seq} ${CHAIN_FAULTS[fault]}`;
}
