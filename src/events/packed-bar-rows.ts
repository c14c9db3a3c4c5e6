import { hash as digest } from 'node:crypto';
import { sql } from 'kysely';
import { lockNumbers } from '../storage/lock-writes.ts';
import { prepareQuery } from '../storage/prepare-query.ts';
import { prepareSharedInsert } from '../storage/share-query.ts';
import type { BotEventsTable, Db } from '../storage/tables.ts';
import type { NewEvent } from './event.ts';
import { BARS, pack, STATE, unpack, type PackedBar, type PackedContext } from './packed-bars.ts';

/** Count of events after which a state is stored whole again. */
const MAX_DISTANCE = 500;
const MAX_BASES = 100;

type Base = PackedContext['base'] & Pick<BotEventsTable, 'seq'>;

/** Known facts about a log as of its newest event. */
export interface Packing {
  bot_no?: number;
  /** Last `session.state` event that is stored whole, by run. */
  readonly bases: Map<string, Base>;
  /** Sequence numbers of events that must be stored whole, since packed rows refer to them. */
  readonly whole?: ReadonlySet<number>;
}

/**
 * Stores the events of bars in packed form.
 *
 * @returns the rows that it has not stored.
 */
export async function storePackedBars(
  tx: Db,
  rows: readonly BotEventsTable[],
  packing: Packing,
): Promise<readonly BotEventsTable[]> {
  const whole: BotEventsTable[] = [];
  const packed: (PackedBar & { readonly base: number; readonly bars: string })[] = [];
  for (let i = 0; i < rows.length; i += 1) {
    const row = rows[i]!;
    const base = row.kind === BARS ? await baseOf(tx, row, packing.bases) : undefined;
    const pair = base && pairAt(rows, i, base, packing.whole);
    const bar = pair ?? (base && pack(row, undefined, base));
    if (bar === undefined) whole.push(row);
    else packed.push({ ...bar, base: bar.seq - base!.seq, bars: row.payload });
    if (pair !== undefined) i += 1;
    else if (row.kind === STATE && row.run_id !== null) packing.bases.set(row.run_id, row);
  }
  if (packing.bases.size > MAX_BASES) packing.bases.clear();
  if (packed.length > 0) {
    packing.bot_no ??= await numberOf(tx, rows[0]!.bot_id);
    const { bot_no } = packing;
    const keys = new Map(packed.map(({ bars }) => [bars, digestOf(bars)]));
    await Promise.all([
      insertBars(
        tx,
        [...keys].map(([payload, key]) => ({ digest: key, payload })),
      ),
      insertPacked(
        tx,
        packed.map(({ bars, hash, ...row }) => ({
          ...row,
          bot_no,
          bars: keys.get(bars)!,
          hash: Buffer.from(hash, 'hex'),
        })),
      ),
    ]);
  }
  return whole;
}

/** Packs bars with the state that follows them directly, unless that is due to be stored whole. */
function pairAt(
  rows: readonly BotEventsTable[],
  at: number,
  base: Base,
  whole: Packing['whole'],
): PackedBar | undefined {
  const [bars, state] = [rows[at]!, rows[at + 1]];
  const isState = state?.kind === STATE && state.run_id === bars.run_id && !whole?.has(state.seq);
  return isState && state.seq - base.seq <= MAX_DISTANCE ? pack(bars, state, base) : undefined;
}

async function baseOf(
  tx: Db,
  { bot_id, run_id, seq: before_seq }: BotEventsTable,
  bases: Packing['bases'],
): Promise<Base | undefined> {
  if (run_id === null) return undefined;
  const known = bases.get(run_id);
  if (known !== undefined) return known;
  const [base] = await selectBase(tx, { bot_id, run_id, before_seq });
  if (base !== undefined) bases.set(run_id, base);
  return base;
}

interface BaseOf {
  readonly bot_id: string;
  readonly run_id: string;
  readonly before_seq: number;
}

const selectBase = prepareQuery((db, { bot_id, run_id, before_seq }: BaseOf) =>
  db
    .selectFrom('bot_events')
    .select(['seq', 'version', 'run_id', 'payload'])
    .where('bot_id', '=', bot_id)
    .where('kind', '=', STATE)
    .where('seq', '<', before_seq)
    .where('run_id', '=', run_id)
    .orderBy('seq', 'desc')
    .limit(1),
);

async function numberOf(tx: Db, bot_id: string): Promise<number> {
  const [known] = await selectNumber(tx, { bot_id });
  if (known !== undefined) return known.bot_no;
  await lockNumbers(tx);
  const { rows } = await sql<{ readonly bot_no: number }>`insert into bot_numbers (bot_no, bot_id)
    select coalesce(max(bot_no), 0) + 1, ${bot_id} from bot_numbers returning bot_no`.execute(tx);
  return rows[0]!.bot_no;
}

const selectNumber = prepareQuery((db, { bot_id }: { readonly bot_id: string }) =>
  db.selectFrom('bot_numbers').select('bot_no').where('bot_id', '=', bot_id),
);

/**
 * Names for the stored bars of events, for the option `shared` of their write. There are 256, since
 * PostgreSQL has room for a few thousand locks.
 */
export function sharedBars(events: readonly Pick<NewEvent, 'kind' | 'payload'>[]): string[] {
  return events
    .filter(({ kind }) => kind === BARS)
    .map(({ payload }) => `bars:${digestOf(JSON.stringify(payload))[0]}`);
}

function digestOf(bars: string): Buffer {
  return digest('sha256', bars, 'buffer').subarray(0, 16);
}

const insertBars = prepareSharedInsert(
  'stored_bars',
  { digest: 'bytea', payload: 'text' },
  (insert) => insert.onConflict((of) => of.doNothing()),
);

const insertPacked = prepareSharedInsert('packed_bars', {
  seq: 'bigint',
  recorded_at: 'bigint',
  bot_no: 'integer',
  base: 'integer',
  bars: 'bytea',
  hash: 'bytea',
  state: 'text',
});

interface PackedRange {
  readonly bot_id: string;
  readonly after_seq: number;
  readonly until_seq: number;
  readonly limit: number;
  readonly run_id?: string | undefined;
  /** Only these kinds; all if empty. */
  readonly kinds: readonly string[];
}

interface FoundRow {
  readonly seq: number;
  readonly recorded_at: number;
  readonly state: string | null;
  readonly hash: Buffer;
  readonly bars: string | null;
  readonly base: string | null;
  readonly version: number | null;
  readonly run_id: string | null;
  /** Hash of the event before, which is packed, archived, or neither. */
  readonly hash_before: string | null;
  readonly packed_before: Buffer | null;
  readonly archived_before: string | null;
}

/** Reads packed events in a range, as they were before they were packed, in order of `seq`. */
export async function readPackedBars(
  db: Db,
  { kinds, run_id, ...place }: PackedRange,
  order: 'asc' | 'desc',
): Promise<readonly BotEventsTable[]> {
  // A row at the end of the range may begin after it.
  const range = { ...place, limit: place.limit + 1 };
  const hasState = kinds.length > 0 && !kinds.includes(BARS);
  const found =
    run_id === undefined && !hasState
      ? await (order === 'asc' ? selectFirst : selectLast)(db, range)
      : await selectPacked(db, range, order, { run_id, hasState }).execute();
  if (order === 'desc') found.reverse();
  return found
    .flatMap((row) => eventsOf(row, range.bot_id))
    .filter(({ seq, kind }) => {
      const isInRange = seq > range.after_seq && seq <= range.until_seq;
      return isInRange && (kinds.length === 0 || kinds.includes(kind));
    });
}

/** If the base or the bars are missing, the hashes of the events do not match. */
function eventsOf(row: FoundRow, bot_id: string): readonly BotEventsTable[] {
  const { version, run_id, base, bars, hash_before, packed_before, hash, ...rest } = row;
  const { archived_before, ...packed } = rest;
  const context = {
    bot_id,
    base: { version: version ?? 0, run_id, payload: base ?? '' },
    bars: bars ?? '',
    prev_hash: hash_before ?? packed_before?.toString('hex') ?? archived_before ?? '',
  };
  return unpack({ ...packed, hash: hash.toString('hex') }, context);
}

type Place = Omit<PackedRange, 'run_id' | 'kinds'>;

const selectFirst = prepareQuery((db, range: Place) => selectPacked(db, range, 'asc'));
const selectLast = prepareQuery((db, range: Place) => selectPacked(db, range, 'desc'));

interface Filter {
  readonly run_id?: string | undefined;
  /** Only rows with an event `session.state`. */
  readonly hasState?: boolean;
}

/** Joins only the rows of the page, because PostgreSQL would join all of them and then sort. */
function selectPacked(
  db: Db,
  { bot_id, after_seq, until_seq, limit }: Place,
  order: 'asc' | 'desc',
  { run_id, hasState = false }: Filter = {},
) {
  const baseOfRow = sql<number>`packed_bars.seq - packed_bars.base`;
  const page = db
    .selectFrom('packed_bars')
    .selectAll()
    .where('bot_no', '=', (of) =>
      of.selectFrom('bot_numbers').select('bot_no').where('bot_id', '=', bot_id),
    )
    .where('seq', '>', after_seq)
    // A row of two events may begin in the range and end after it.
    .where((eb) => eb(sql<number>`seq`, '<=', sql<number>`${until_seq} + 1`))
    .$if(hasState, (query) => query.where('state', 'is not', null))
    .$if(run_id !== undefined, (query) =>
      query.where(
        (of) =>
          of
            .selectFrom('bot_events as base')
            .select('base.run_id')
            .where('base.bot_id', '=', bot_id)
            .where((eb) => eb('base.seq', '=', baseOfRow)),
        '=',
        run_id!,
      ),
    )
    .orderBy('seq', order)
    .limit(limit);
  const before = sql<number>`packed.seq - case when packed.state is null then 1 else 2 end`;
  return db
    .selectFrom(page.as('packed'))
    .leftJoin('stored_bars', 'stored_bars.digest', 'packed.bars')
    .leftJoin('bot_events as base', (join) =>
      join
        .on('base.bot_id', '=', bot_id)
        .on((eb) => eb('base.seq', '=', sql<number>`packed.seq - packed.base`)),
    )
    .leftJoin('bot_events as event_before', (join) =>
      join.on('event_before.bot_id', '=', bot_id).on((eb) => eb('event_before.seq', '=', before)),
    )
    .leftJoin('packed_bars as packed_before', (join) =>
      join
        .onRef('packed_before.bot_no', '=', 'packed.bot_no')
        .on((eb) => eb('packed_before.seq', '=', before)),
    )
    .leftJoin('bot_event_heads as archived', (join) =>
      join.on('archived.bot_id', '=', bot_id).on((eb) => eb('archived.seq', '=', before)),
    )
    .select(['packed.seq', 'packed.recorded_at', 'packed.state', 'packed.hash'])
    .select(['stored_bars.payload as bars', 'base.payload as base', 'base.version', 'base.run_id'])
    .select(['event_before.hash as hash_before', 'packed_before.hash as packed_before'])
    .select('archived.hash as archived_before')
    .orderBy('packed.seq', order)
    .$castTo<FoundRow>();
}

/** Whether packed events were added to a log after its head. */
export async function hasPackedBeyondHead(db: Db, bot_id: string): Promise<boolean> {
  const rows = await db
    .selectFrom('bots')
    .innerJoin('bot_numbers', 'bot_numbers.bot_id', 'bots.bot_id')
    .innerJoin('packed_bars', 'packed_bars.bot_no', 'bot_numbers.bot_no')
    .select('seq')
    .where('bots.bot_id', '=', bot_id)
    .whereRef('seq', '>', 'event_seq')
    .limit(1)
    .execute();
  return rows.length > 0;
}

/** Counts packed events in a range by kind and run. */
export async function countPackedBars(
  db: Db,
  bot_id: string,
  { after_seq, until_seq }: Pick<PackedRange, 'after_seq' | 'until_seq'>,
): Promise<{ readonly kind: string; readonly run_id: string | null; readonly count: number }[]> {
  const { rows } = await sql<{
    readonly run_id: string | null;
    readonly bars: number;
    readonly states: number;
  }>`select run_id,
      count(case when bars_seq > ${after_seq} and bars_seq <= ${until_seq} then 1 end) as bars,
      count(case when state_seq <= ${until_seq} then 1 end) as states
    from (
      select base.run_id,
        case when packed.state is null then packed.seq else packed.seq - 1 end as bars_seq,
        case when packed.state is not null then packed.seq end as state_seq
      from bot_numbers bot
      join packed_bars packed on packed.bot_no = bot.bot_no
      left join bot_events base on base.bot_id = bot.bot_id and base.seq = packed.seq - packed.base
      where bot.bot_id = ${bot_id} and packed.seq > ${after_seq} and packed.seq <= ${until_seq + 1}
    ) as packed_events
    group by run_id`.execute(db);
  return rows.flatMap(({ run_id, bars, states }) => [
    ...(bars > 0 ? [{ kind: BARS, run_id, count: bars }] : []),
    ...(states > 0 ? [{ kind: STATE, run_id, count: states }] : []),
  ]);
}
