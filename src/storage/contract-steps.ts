/**
 * Migrations after which versions that do not know them must not use the database, and why. All other
 * migrations are expand steps: they add tables and columns that earlier versions can ignore, or drop
 * foreign keys or indexes that are not unique, so that servers of two versions run side by side during an
 * upgrade.
 *
 * A migration belongs here if earlier versions would fail after it, or would ignore rows that restrict
 * something. The database stores this with each migration, for versions that do not know it.
 */
export const CONTRACT_STEPS: Readonly<Record<string, string>> = {
  trading: 'it replaces the table of tasks',
  compliance: 'it replaces the snapshots of bots',
  tests: 'it replaces the column with the target of a deployment',
  'database identity': 'earlier versions would trade with a copy of the database',
  'license root': 'earlier versions would sign leases with keys that the root does not cover',
  'license use': 'earlier versions would issue leases without their product and binding',
  'narrowed tokens': 'earlier versions would accept narrowed tokens for everything',
  'packed bars': 'earlier versions cannot read the events of packed rows',
  'event archives': 'earlier versions would report archived events as missing',
  'trial ledger': 'earlier versions would run backtests that the ledger does not count',
  'trials of searches': 'earlier versions would count the trials of a search as one',
  'authorized overrides': 'it renames columns of the overrides',
};

export type Phase = 'expand' | 'contract';

export function phaseOf({ name }: { readonly name: string }): Phase {
  return Object.hasOwn(CONTRACT_STEPS, name) ? 'contract' : 'expand';
}
