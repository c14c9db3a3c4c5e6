import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  clearAbandonedPassages,
  clearPassages,
  getDocument,
  listDocuments,
  publishDocument,
  removeDocument,
  stageDocument,
  type DocumentHead,
  type NewDocument,
} from '../../../src/research/knowledge/documents.ts';
import { searchPassages } from '../../../src/research/knowledge/search.ts';
import { newWorld, type World } from '../../identity/people.ts';
import { mainlyOn } from '../../storage/databases.ts';

const RISK = `# Risk policy

No bot loses more than 2 % a day.

## Drawdown

A drawdown of 20 % halts the bot.

## Café rules

Die Größe der Position ist begrenzt. Μέγιστο όριο. Сильный ветёр.
最大回撤是百分之二十。
`;
const LATENCY = `Orders leave within 5 ms.

A slow venue is a risk, too: see max_latency.
`;

describe.each(mainlyOn('sqlite'))('knowledge on %s', (kind) => {
  let world: World;

  beforeEach(async () => {
    world = await newWorld(kind);
  });

  afterEach(() => world.close());

  const add = async (name: string, text: string, more: Partial<NewDocument> = {}) => {
    const staged = await stageDocument(world.identity, { name, text, ...more });
    try {
      return (await publishDocument(world.identity, 'operator', staged)).document;
    } finally {
      await clearPassages(world.identity, staged.document_id);
    }
  };
  const search = (text: string, limit = 10) => searchPassages(world.identity.storage, text, limit);
  /** Names and lines of the found passages. */
  const places = async (text: string, limit?: number) =>
    (await search(text, limit)).map(
      ({ document, lines }) => `${document}:${lines.from}-${lines.to}`,
    );
  const count = async (table: 'knowledge_passages' | 'knowledge_unlisted') =>
    (await world.identity.storage.read.selectFrom(table).selectAll().execute()).length;

  test('a search for words returns the passage with its document, headings and lines', async () => {
    const { document_id } = await add('risk.md', RISK);
    await add('latency.txt', LATENCY);
    expect(await search('DRAWDOWN halts?')).toEqual([
      {
        document_id,
        document: 'risk.md',
        passage_id: `${document_id}:2`,
        heading: ['Risk policy', 'Drawdown'],
        lines: { from: 5, to: 7 },
        text: '## Drawdown\n\nA drawdown of 20 % halts the bot.',
        score: expect.any(Number) as number,
      },
    ]);
  });

  test('search ignores accents and case, and works in several scripts', async () => {
    await add('risk.md', RISK);
    const alike = ['CAFÉ', 'Cafe\u0301', 'GRÖẞE', 'ΜΕΓΙΣΤΟ', 'ветер', '回撤', '最大回撤是'];
    for (const text of alike) expect([text, await places(text)]).toEqual([text, ['risk.md:9-12']]);
    expect(await places('回百')).toEqual([]);
    expect(await places('limits 🙂 ¿¡')).toEqual([]);
  });

  test('passages with more of the words, or rarer words, come first', async () => {
    const filler = Array.from({ length: 12 }, (_, i) => `## Part ${i}\n\nThe bot trades.\n`);
    await add(
      'bots.md',
      ['# Bots\n', ...filler, '## End\n\nThe bot stops at a quorum.'].join('\n'),
    );
    await add('other.md', '# Quorum of the bot that stops\n\nIt stops, and the bot stops again.');
    const found = await search('when stops the bot', 3);
    expect(found.map(({ document }) => document)).toEqual(['other.md', 'bots.md', 'bots.md']);
    expect(found[1]!.heading).toEqual(['Bots', 'End']);
    const scores = found.map(({ score }) => score);
    expect(scores).toEqual(scores.toSorted((a, b) => b - a));
    expect(scores.every((score) => score > 0)).toBe(true);
  });

  test('query syntax of the database is treated as words or ignored', async () => {
    await add('risk.md', RISK);
    for (const text of [
      'drawdown"',
      'NEAR(drawdown halts)',
      'terms:drawdown',
      'drawdown*',
      '^drawdown',
      'drawdown AND NOT halts',
      '{terms} : drawdown',
      "drawdown' | !'x",
      'drawdown:* & !halts <-> \\',
      '-drawdown +halts',
      'drawdown\0; drop table knowledge_documents --',
    ]) {
      expect([text, await places(text)]).toEqual([text, ['risk.md:5-7']]);
    }
    for (const text of ['"', '" OR 1=1 --', '(((', '*', "'", '\\']) {
      expect([text, await places(text)]).toEqual([text, []]);
    }
  });

  test('a text replaces another one of the same name only on request', async () => {
    const first = await add('risk.md', RISK);
    expect(await add('risk.md', RISK)).toEqual(first);
    await expect(add('risk.md', LATENCY)).rejects.toMatchObject({
      code: 'conflict',
      reason: 'name_taken',
    });
    const second = await add('risk.md', LATENCY, { replace: true });
    expect(second).toMatchObject({ name: 'risk.md', revision: 2, title: 'risk.md', lines: 4 });
    expect(await places('drawdown')).toEqual([]);
    expect(await places('venue')).toEqual(['risk.md:1-3']);
    await expect(getDocument(world.identity.storage.read, first.document_id)).rejects.toMatchObject(
      { code: 'not_found' },
    );
    await clearPassages(world.identity, first.document_id);
    expect([await count('knowledge_passages'), await count('knowledge_unlisted')]).toEqual([1, 0]);
  });

  test('only one of two concurrent requests can use a name for different texts', async () => {
    const staged = await Promise.all(
      [RISK, LATENCY].map((text) => stageDocument(world.identity, { name: 'a', text })),
    );
    const results = await Promise.allSettled(
      staged.map((one) => publishDocument(world.identity, 'operator', one)),
    );
    expect(results.map(({ status }) => status).sort()).toEqual(['fulfilled', 'rejected']);
  });

  test('two concurrent requests for the same text get the same document', async () => {
    const staged = await Promise.all(
      [1, 2].map(() => stageDocument(world.identity, { name: 'a', text: RISK })),
    );
    const [one, two] = await Promise.all(
      staged.map((each) => publishDocument(world.identity, 'operator', each)),
    );
    expect(two).toEqual({ document: one!.document, replaced: null });
  });

  test('a removed document is no longer found, and its removal is audited', async () => {
    const { document_id, sha256 } = await add('risk.md', RISK);
    await removeDocument(world.identity, 'operator', document_id);
    expect(await places('drawdown')).toEqual([]);
    await clearPassages(world.identity, document_id);
    expect([await count('knowledge_passages'), await count('knowledge_unlisted')]).toEqual([0, 0]);
    const audit = await world.identity.storage.read
      .selectFrom('audit_entries')
      .select(['action', 'details'])
      .orderBy('seq')
      .execute();
    expect(audit.map(({ action, details }) => [action, JSON.parse(details) as unknown])).toEqual([
      [
        'admin.knowledge.document.add',
        { name: 'risk.md', revision: 1, sha256, bytes: Buffer.byteLength(RISK), replaces: null },
      ],
      ['admin.knowledge.document.remove', { name: 'risk.md', revision: 1, sha256 }],
    ]);
  });

  test('passages left by a killed process are not found, and are removed later', async () => {
    await stageDocument(world.identity, { name: 'risk.md', text: RISK });
    expect(await places('drawdown')).toEqual([]);
    await clearAbandonedPassages(world.identity);
    expect(await count('knowledge_passages')).toBe(3);
    world.now += 2 * 3_600_000;
    await clearAbandonedPassages(world.identity);
    expect([await count('knowledge_passages'), await count('knowledge_unlisted')]).toEqual([0, 0]);
  });

  test('documents are listed in pages without their texts', async () => {
    const all: DocumentHead[] = [];
    for (const name of ['a', 'b', 'c']) {
      all.push(await add(name, `# ${name}`));
      world.now += 1;
    }
    const { read } = world.identity.storage;
    const page = await listDocuments(read, {}, { limit: 2 });
    expect(page.items).toEqual(all.slice(0, 2));
    const rest = await listDocuments(read, {}, { limit: 2, cursor: page.next_cursor! });
    expect(rest).toEqual({ items: all.slice(2), next_cursor: null });
    const named = await listDocuments(read, { name: 'b' }, { limit: 2 });
    expect(named.items).toEqual([all[1]]);
  });
});
