import { endFault, type ChainFault, type ChainHead, GENESIS } from '../../src/base/hash-chain.ts';
import { createHash } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { appendAudit, readAudit, verifyAudit, type AuditEntry } from '../../src/identity/audit.ts';
import { openStorage, type Storage } from '../../src/storage/storage.ts';
import { mainlyOn, newDatabase, type TestDatabase } from '../storage/databases.ts';

const NOW = Date.parse('2026-01-02T03:04:05.006Z');

/** Verifies like `identity audit verify`, page by page. */
async function verify(
  storage: Storage,
  from = GENESIS,
  limit = 3,
): Promise<ChainHead | ChainFault> {
  let last = from;
  for (;;) {
    const { entries, head } = await readAudit(storage.read, last.seq, limit);
    const next = verifyAudit(last, entries);
    if ('fault' in next) return next;
    last = next;
    if (entries.length < limit) return endFault(last, head) ?? last;
  }
}

describe.each(mainlyOn('sqlite'))('the audit log on %s', (kind) => {
  let database: TestDatabase;
  let storage: Storage;

  beforeAll(async () => {
    database = await newDatabase(kind);
    storage = await openStorage(database.location);
  });

  beforeEach(() =>
    database.execute(`delete from audit_entries; delete from audit_head;
      insert into audit_head (id, seq, hash) values (1, 0, '${GENESIS.hash}')`),
  );

  afterAll(async () => {
    await storage.close();
    await database.remove();
  });

  const append = (n: number, details: Readonly<Record<string, unknown>> = { n }): Promise<void> =>
    storage.write((tx) =>
      appendAudit(tx, NOW + n, { actor: 'operator', action: 'test', target: `n:${n}`, details }),
    );
  const fill = async (): Promise<ChainHead> => {
    for (let n = 1; n <= 8; n++) await append(n);
    return (await readAudit(storage.read, 8, 1)).head;
  };

  test('a clock that was set back is recorded before the entry with the earlier time', async () => {
    const event = { actor: 'operator', action: 'a', target: 't' } as const;
    await storage.write((tx) => appendAudit(tx, NOW + 3_600_000, event));
    await storage.write(async (tx) => {
      await appendAudit(tx, NOW, event);
      await appendAudit(tx, NOW - 4_000, event);
    });
    const { entries } = await readAudit(storage.read, 0, 10);
    expect(entries.map(({ seq, action, recorded_at }) => [seq, action, recorded_at])).toEqual([
      [1, 'a', '2026-01-02T04:04:05.006Z'],
      [2, 'server.clock.set_back', '2026-01-02T03:04:05.006Z'],
      [3, 'a', '2026-01-02T03:04:05.006Z'],
      [4, 'a', '2026-01-02T03:04:01.006Z'],
    ]);
    expect(entries[1]!.details).toEqual({
      previous_seq: 1,
      previous_recorded_at: '2026-01-02T04:04:05.006Z',
      skew_ms: 3_600_000,
    });
    expect(await verify(storage)).toMatchObject({ seq: 4 });
  });

  test('the chain can be verified with RFC 8785 and SHA-256 alone', async () => {
    await append(1, { b: 1, a: ['é', null, 1e21] });
    await append(2);
    const { entries, head } = await readAudit(storage.read, 0, 10);
    const first =
      `{"action":"test","actor":"operator","details":{"a":["é",null,1e+21],"b":1},` +
      `"prev_hash":"${'0'.repeat(64)}","recorded_at":"2026-01-02T03:04:05.007Z","seq":1,"target":"n:1"}`;
    const hash = createHash('sha256').update(first).digest('hex');
    expect(entries[0]).toEqual({ ...(JSON.parse(first) as AuditEntry), hash });
    expect(entries[1]).toMatchObject({ seq: 2, prev_hash: hash });
    expect(head).toEqual({ seq: 2, hash: entries[1]!.hash });
  });

  test('verification succeeds for an empty log, a growing log and from any earlier head', async () => {
    expect(await verify(storage)).toEqual(GENESIS);
    for (let n = 1; n <= 3; n++) await append(n);
    const noted = (await verify(storage)) as ChainHead;
    for (let n = 4; n <= 9; n++) await append(n);
    const head = await verify(storage);
    expect(head).toMatchObject({ seq: 9 });
    expect(await verify(storage, noted)).toEqual(head);
  });

  test('details can be any JSON', async () => {
    const json = fc.dictionary(fc.string({ unit: 'grapheme' }), fc.jsonValue());
    const samples = fc.sample(json, 200);
    await Promise.all(samples.map((details, n) => append(n, details)));
    expect(await verify(storage, GENESIS, 1000)).toMatchObject({ seq: 200 });
  });

  test('entries of two servers that write in parallel are in one order', async () => {
    // SQLite does not support two connections of one process that write in parallel.
    const other = kind === 'postgres' ? await openStorage(database.location) : storage;
    const event = { actor: 'server', action: 'test', target: 't' } as const;
    await Promise.all(
      Array.from({ length: 60 }, (_, n) =>
        (n % 2 === 0 ? storage : other).write((tx) => appendAudit(tx, NOW + n, event)),
      ),
    );
    if (other !== storage) await other.close();
    expect(await verify(storage)).toMatchObject({ seq: 60 });
  });

  test('a transaction that fails leaves no entry', async () => {
    await append(1);
    const failing = storage.write(async (tx) => {
      await appendAudit(tx, NOW, { actor: 'operator', action: 'test', target: 't' });
      throw new RangeError('no');
    });
    await expect(failing).rejects.toThrow(RangeError);
    expect(await verify(storage)).toMatchObject({ seq: 1 });
  });

  test.each<[what: string, sql: string, ChainFault]>([
    ['seq', `update audit_entries set seq = 40 where seq = 4`, { seq: 4, fault: 'missing' }],
    ['seq', `update audit_entries set seq = -4 where seq = 4`, { seq: 4, fault: 'missing' }],
    [
      'recorded_at',
      `update audit_entries set recorded_at = recorded_at + 1 where seq = 4`,
      { seq: 4, fault: 'altered' },
    ],
    [
      'recorded_at',
      `update audit_entries set recorded_at = 9000000000000000000 where seq = 4`,
      { seq: 4, fault: 'altered' },
    ],
    [
      'actor',
      `update audit_entries set actor = 'server' where seq = 4`,
      { seq: 4, fault: 'altered' },
    ],
    ['action', `update audit_entries set action = '' where seq = 4`, { seq: 4, fault: 'altered' }],
    [
      'target',
      `update audit_entries set target = 'n:3' where seq = 4`,
      { seq: 4, fault: 'altered' },
    ],
    ...['{"n":5}', '{}', '', 'null', '[4]', '{"n":1e999}', '{"n":"\\ud83d"}', '{"n":4'].map(
      (details): [string, string, ChainFault] => [
        'details',
        `update audit_entries set details = '${details}' where seq = 4`,
        { seq: 4, fault: 'altered' },
      ],
    ),
    [
      'prev_hash',
      `update audit_entries set prev_hash = '${'0'.repeat(64)}' where seq = 4`,
      { seq: 4, fault: 'not_linked' },
    ],
    [
      'hash',
      `update audit_entries set hash = prev_hash where seq = 4`,
      { seq: 4, fault: 'altered' },
    ],
    [
      'a row in the middle',
      `delete from audit_entries where seq = 4`,
      { seq: 4, fault: 'missing' },
    ],
    ['the first row', `delete from audit_entries where seq = 1`, { seq: 1, fault: 'missing' }],
    ['the last row', `delete from audit_entries where seq = 8`, { seq: 8, fault: 'missing' }],
    ['all rows', `delete from audit_entries`, { seq: 1, fault: 'missing' }],
    [
      'a row put at the end',
      `insert into audit_entries select 9, recorded_at, actor, action, target, details, hash, hash
        from audit_entries where seq = 8`,
      { seq: 9, fault: 'altered' },
    ],
    ['the head moved back', `update audit_head set seq = 7`, { seq: 8, fault: 'beyond_head' }],
    ['the head altered', `update audit_head set hash = ''`, { seq: 8, fault: 'altered' }],
    [
      'two rows that changed places',
      `update audit_entries set seq = 40 where seq = 4;
       update audit_entries set seq = 4 where seq = 5;
       update audit_entries set seq = 5 where seq = 40`,
      { seq: 4, fault: 'not_linked' },
    ],
  ])('shows that somebody tampered with %s: %s', async (_what, sql, fault) => {
    await fill();
    await database.execute(sql);
    expect(await verify(storage)).toEqual(fault);
  });

  test('a log that was cut off and continued differs from a head that was noted before', async () => {
    const noted = await fill();
    await database.execute(`delete from audit_entries where seq > 5;
      update audit_head set seq = 5, hash = (select hash from audit_entries where seq = 5)`);
    expect(await verify(storage)).toMatchObject({ seq: 5 });
    expect(await verify(storage, noted)).toEqual({ seq: 6, fault: 'beyond_head' });
  });

  test('appending to a log whose head is missing is an error', async () => {
    await fill();
    await database.execute(`delete from audit_head`);
    const lost = { code: 'audit_tampered' };
    await expect(append(9)).rejects.toMatchObject(lost);
    await expect(readAudit(storage.read, 0, 100)).rejects.toMatchObject(lost);
  });
});
