/** The trial ledger of a server, which counts the backtests and searches of all users and agents. */
import { areTogether, lengthOf, TrialSample } from '../../backtest/ledger/earlier-trials.ts';
import {
  entryAfter,
  type LedgerEntry,
  type LedgerRecord,
  type TrialScope,
} from '../../backtest/ledger/ledger-entry.ts';
import {
  countPacked,
  NO_KEYS,
  packTrials,
  TrialKeys,
  unpackTrials,
  type PackedTrials,
} from '../../backtest/ledger/packed-trials.ts';
import { entryOf, packedRows, rowsAfter, scopeOf, symbolsOf } from './trial-rows.ts';
import { ServiceError } from '../../base/errors.ts';
import type { ChainHead } from '../../base/hash-chain.ts';
import type { StorageService } from '../../storage/storage.ts';
import type { Db, TrialEntriesTable } from '../../storage/tables.ts';
import type { EarlierTrials, Holdout } from '../../backtest/summary.ts';

/** The trial of a backtest, known once its data are read. */
export interface TaskTrial {
  /** See `trialLock`. */
  readonly lock: string;
  /** See `trialKey`. */
  readonly key: string;
  readonly scope: TrialScope;
  readonly holdout?: Holdout | undefined;
}

/** A trial that has ended; its Sharpe ratio is null if it is undefined or the trial failed. */
export type ExecutedTaskTrial = TaskTrial & { readonly sharpe: number | null };

/** Counts from the ledger when a trial starts. */
export interface TrialCounts {
  readonly earlier: EarlierTrials;
  readonly holdout?: Holdout | undefined;
}

/** Records the trial of a task, unless it is already recorded. */
export async function recordTrial(
  tx: Db,
  task_id: string,
  now: number,
  { lock, key, scope, sharpe }: ExecutedTaskTrial,
): Promise<void> {
  if (await isRecorded(tx, lock, key)) return;
  const by = await callerOf(tx, task_id);
  const trials = packTrials(new Map([[key, sharpe]]));
  const record = { kind: 'trials', by, lock, ...scope, count: 1, trials } as const;
  await append(tx, now, record, { trial_key: key, sharpe, packed: null });
}

/** Trials of a search, which its client reports. */
export interface ReportedTrials {
  /** See `trialLock`. */
  readonly lock: string;
  readonly scope: TrialScope;
  readonly trials: PackedTrials;
}

/** Beyond the Sharpe ratio of any run, and small enough that sums of squares are finite. */
const MOST_SHARPE = 1e20;

/**
 * Records the trials that are not recorded yet, in one entry. Entries are searched before the write, since
 * all other writes wait for it, and the write searches only those added since.
 *
 * @throws ServiceError `invalid_request` for trials that are not packed, or a Sharpe ratio beyond `MOST_SHARPE`
 */
export async function recordTrials(
  { storage, clock }: StorageService,
  by: string,
  { lock, scope, trials }: ReportedTrials,
): Promise<void> {
  const { seq } = await headOf(storage.read);
  const candidates = await withoutRecorded(storage.read, lock, unpackReported(trials), 0);
  if (candidates.size === 0) return;
  await storage.write(async (tx) => {
    const unrecorded = await withoutRecorded(tx, lock, candidates, seq);
    const [first] = unrecorded.keys();
    if (first === undefined) return;
    const packed = packTrials(unrecorded);
    const count = unrecorded.size;
    const record = { kind: 'trials', by, lock, ...scope, count, trials: packed } as const;
    await append(tx, clock(), record, { trial_key: first, sharpe: null, packed });
  });
}

/** Sharpe ratios by key. */
type Sharpes = ReadonlyMap<string, number | null>;

function unpackReported(trials: PackedTrials): Sharpes {
  const sharpes = new Map<string, number | null>();
  for (const { key, sharpe } of unpackTrials(trials)) {
    if (sharpe !== null && !(Math.abs(sharpe) <= MOST_SHARPE)) throw notPacked();
    sharpes.set(key, sharpe);
  }
  if (!Number.isInteger(countPacked(trials))) throw notPacked();
  return sharpes;
}

/** Returns the trials that no entry of the lock after a sequence number has. */
async function withoutRecorded(
  db: Db,
  lock: string,
  trials: Sharpes,
  after: number,
): Promise<Sharpes> {
  const unrecorded = new Map(trials);
  const single = await db
    .selectFrom('trial_entries')
    .select('trial_key')
    .where('lock_digest', '=', lock)
    .where('seq', '>', after)
    .execute();
  for (const { trial_key } of single) unrecorded.delete(trial_key);
  const keys = new TrialKeys(unrecorded.keys());
  for await (const { packed } of packedRows(db, { lock_digest: lock }, after)) {
    for (const key of keys.foundIn(packed)) unrecorded.delete(key);
  }
  return unrecorded;
}

function notPacked(): ServiceError {
  return new ServiceError(
    'invalid_request',
    `trials must be 16 bytes each, with a Sharpe ratio of at most ${MOST_SHARPE.toExponential()} in absolute value, or NaN`,
  );
}

/** Records that a task opens its holdout, once for all attempts of the task. */
export async function recordOpening(
  tx: Db,
  task_id: string,
  now: number,
  { lock, scope, holdout }: TaskTrial,
): Promise<void> {
  const trial_key = `task:${task_id}`;
  if (holdout === undefined || (await isRecorded(tx, lock, trial_key))) return;
  const by = await callerOf(tx, task_id);
  const record = { kind: 'holdout_opened', by, lock, ...periodOf(scope, holdout) } as const;
  await append(tx, now, record, { trial_key, sharpe: null, packed: null });
}

/** The trials of a task, which do not count as earlier ones. */
export interface OwnTrials extends Pick<TaskTrial, 'lock' | 'scope' | 'holdout'> {
  /** See `trialKey`. */
  readonly keys: readonly string[];
}

/** Sequence number of the newest entry. */
export async function lastTrialEntry(db: Db): Promise<number> {
  return (await headOf(db)).seq;
}

/**
 * Counts the other trials on the data of a task, and the use of its holdout.
 * @param until sequence number of the last entry that counts; all by default.
 */
export async function countTrials(
  db: Db,
  own: OwnTrials,
  until = Number.MAX_SAFE_INTEGER,
): Promise<TrialCounts> {
  const { scope, holdout } = own;
  const earlier = await earlierThan(db, scope, { own, until });
  if (holdout === undefined) return { earlier };
  const period = periodOf(scope, holdout);
  const opened = countOf(await groupsOver(db, 'holdout_opened', period));
  const trials =
    countOf(await groupsOver(db, 'trials', period)) + (await countPackedOver(db, period));
  return { earlier, holdout: { ...holdout, opened, trials } };
}

const periodOf = (scope: TrialScope, { from, to }: Holdout): TrialScope => ({ ...scope, from, to });

/** Selects the entries that count. */
interface Counted {
  readonly own?: OwnTrials;
  /** Sequence number of the last one. */
  readonly until?: number;
}

async function earlierThan(db: Db, scope: TrialScope, counted: Counted): Promise<EarlierTrials> {
  const sample = new TrialSample();
  const length = lengthOf(scope);
  for await (const { sharpe, window_from, window_to } of singleOver(db, scope, counted)) {
    sample.add(sharpe, (window_to - window_from + scope.bar_ms) / length);
  }
  const { own, until } = counted;
  const ownKeys = own === undefined ? NO_KEYS : new TrialKeys(own.keys);
  for await (const { packed, ...row } of packedOver(db, scope, until)) {
    const share = (row.window_to - row.window_from + scope.bar_ms) / length;
    const keys = row.lock_digest === own?.lock ? ownKeys : NO_KEYS;
    for (const sharpe of keys.otherSharpes(packed)) sample.add(sharpe, share);
  }
  return sample.figures();
}

const countOf = (groups: readonly { readonly entries: number | string | bigint }[]): number =>
  groups.reduce((total, { entries }) => total + Number(entries), 0);

/** Counts the entries of backtests that count together with a scope, by symbols. */
async function groupsOver(db: Db, kind: TrialEntriesTable['kind'], scope: TrialScope) {
  const groups = await overlapping(db, kind, scope)
    .select(({ fn }) => ['symbols', fn.countAll().as('entries')])
    .groupBy('symbols')
    .execute();
  return groups.filter(({ symbols }) => haveCommonSymbol(symbols, scope));
}

/** Selects the entries of backtests whose windows overlap with a scope. */
function overlapping(db: Db, kind: TrialEntriesTable['kind'], scope: TrialScope) {
  return db
    .selectFrom('trial_entries')
    .where('kind', '=', kind)
    .where('packed', 'is', null)
    .where('family', '=', scope.family)
    .where('bar_ms', '=', scope.bar_ms)
    .where('window_from', '<=', Date.parse(scope.to))
    .where('window_to', '>=', Date.parse(scope.from));
}

const haveCommonSymbol = (symbols: string, scope: TrialScope): boolean =>
  areTogether({ ...scope, symbols: symbolsOf(symbols) }, scope);

const BACKTESTS_AT_ONCE = 10_000;

/** Entries of backtests that count together with a scope. */
async function* singleOver(db: Db, scope: TrialScope, { own, until }: Counted) {
  let query = overlapping(db, 'trials', scope)
    .select(['seq', 'symbols', 'window_from', 'window_to', 'sharpe'])
    .orderBy('seq')
    .limit(BACKTESTS_AT_ONCE);
  if (until !== undefined) query = query.where('seq', '<=', until);
  const recorded = own === undefined ? [] : await recordedKeys(db, own);
  if (own !== undefined && recorded.length > 0) {
    query = query.where((is) =>
      is.or([is('lock_digest', '<>', own.lock), is('trial_key', 'not in', recorded)]),
    );
  }
  const isTogether = new Map<string, boolean>();
  for (let last = 0; ;) {
    const rows = await query.where('seq', '>', last).execute();
    for (const row of rows) {
      const { symbols } = row;
      if (!isTogether.has(symbols)) isTogether.set(symbols, haveCommonSymbol(symbols, scope));
      if (isTogether.get(symbols)) yield row;
    }
    if (rows.length < BACKTESTS_AT_ONCE) return;
    last = rows.at(-1)!.seq;
  }
}

/** The keys with an entry of their own, of a backtest. */
async function recordedKeys(db: Db, { lock, keys }: OwnTrials): Promise<string[]> {
  const own = new Set(keys);
  const rows = await db
    .selectFrom('trial_entries')
    .select('trial_key')
    .where('lock_digest', '=', lock)
    .where('packed', 'is', null)
    .execute();
  return rows.map(({ trial_key }) => trial_key).filter((key) => own.has(key));
}

/** Entries of searches that count together with a scope. */
async function* packedOver(db: Db, scope: TrialScope, until = Number.MAX_SAFE_INTEGER) {
  const { family, bar_ms } = scope;
  for await (const row of packedRows(db, { family, bar_ms })) {
    if (row.seq > until) return;
    if (areTogether(scopeOf(row), scope)) yield row;
  }
}

async function countPackedOver(db: Db, scope: TrialScope): Promise<number> {
  let count = 0;
  for await (const { packed } of packedOver(db, scope)) count += countPacked(packed);
  return count;
}

async function isRecorded(db: Db, lock: string, trial_key: string): Promise<boolean> {
  const row = await db
    .selectFrom('trial_entries')
    .select('seq')
    .where('lock_digest', '=', lock)
    .where('trial_key', '=', trial_key)
    .executeTakeFirst();
  if (row !== undefined) return true;
  const keys = new TrialKeys([trial_key]);
  for await (const { packed } of packedRows(db, { lock_digest: lock })) {
    if (!keys.foundIn(packed).next().done) return true;
  }
  return false;
}

export async function callerOf(db: Db, task_id: string): Promise<string> {
  const { created_by } = await db
    .selectFrom('tasks')
    .select('created_by')
    .where('task_id', '=', task_id)
    .executeTakeFirstOrThrow();
  return created_by;
}

async function append(
  tx: Db,
  now: number,
  record: LedgerRecord,
  { trial_key, sharpe, packed }: Pick<TrialEntriesTable, 'trial_key' | 'sharpe' | 'packed'>,
): Promise<void> {
  const { seq, prev_hash, hash } = entryAfter(await headOf(tx), now, record);
  const { kind, by, lock, family, symbols, bar_ms, from, to } = record;
  await tx
    .insertInto('trial_entries')
    .values({
      seq,
      recorded_at: now,
      kind,
      recorded_by: by,
      lock_digest: lock,
      trial_key,
      sharpe,
      family,
      symbols: JSON.stringify(symbols),
      bar_ms,
      window_from: Date.parse(from),
      window_to: Date.parse(to),
      prev_hash,
      hash,
      packed,
    })
    .execute();
  await tx.updateTable('trial_head').set({ seq, hash }).execute();
}

async function headOf(db: Db): Promise<ChainHead> {
  const head = await db.selectFrom('trial_head').select(['seq', 'hash']).executeTakeFirst();
  if (head !== undefined) return head;
  throw new ServiceError('trials_tampered', 'the table trial_head has no row', {
    remedy: 'Find out who can write to the database, and restore it from a backup.',
  });
}

interface TrialsPage {
  readonly entries: readonly LedgerEntry[];
  /** Whether the ledger has entries after these. */
  readonly hasMore: boolean;
  readonly head: ChainHead;
}

/**
 * Returns entries after `afterSeq`, oldest first, as they are stored, so that their reader can verify the
 * chain.
 *
 * @param most.count of entries
 * @param most.bytes of packed trials, unless the first entry has more
 */
export async function readTrials(
  db: Db,
  afterSeq: number,
  most: { readonly count: number; readonly bytes: number },
): Promise<TrialsPage> {
  const entries: LedgerEntry[] = [];
  let bytes = 0;
  let hasMore = false;
  for await (const row of rowsAfter(db, afterSeq)) {
    bytes += row.packed?.length ?? 0;
    hasMore = entries.length === most.count || (entries.length > 0 && bytes > most.bytes);
    if (hasMore) break;
    entries.push(entryOf(row));
  }
  // Read after the entries, so that none of them is after the head.
  return { entries, hasMore, head: await headOf(db) };
}
