import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { exampleDocument } from '../../../src/api/bots.ts';
import {
  archiveBot,
  createBot,
  getBot,
  listBots,
  formatEtag,
  updateBot,
  type Bot,
} from '../../../src/fleet/registry/bots.ts';
import { diffVersions, getVersion, listVersions } from '../../../src/fleet/registry/versions.ts';
import type { SentSpec } from '../../../src/bots/hosted.ts';
import { specHash } from '../../../src/bots/spec-lock.ts';
import { readEvents } from '../../../src/events/read-events.ts';
import { stateAt } from '../../../src/events/snapshot.ts';
import { verifyEvents } from '../../../src/events/verify-events.ts';
import type { Identity } from '../../../src/identity/context.ts';
import { MINUTE, newWorld, type World } from '../../identity/people.ts';
import { mainlyOn } from '../../storage/databases.ts';

const BY = 'administrator:ada';
const PAGE = { limit: 100 };

describe.each(mainlyOn('sqlite'))('the registry of bots on %s', (kind) => {
  let world: World;
  let registry: Identity;
  let count = 0;
  /** Another one in each test: they share a database, which is dear to make. */
  let slug: string;

  beforeAll(async () => {
    world = await newWorld(kind);
    registry = world.identity;
  });
  afterAll(() => world.close());
  beforeEach(() => {
    count += 1;
    slug = `bot-${count}`;
  });

  const sent = (fast: number, as = slug): SentSpec => ({ document: exampleDocument(as, fast) });
  const create = (as = slug): Promise<Bot> => createBot(registry, BY, sent(10, as));
  const update = (spec: SentSpec, tag?: string): Promise<Bot> =>
    updateBot(registry, BY, slug, tag === undefined ? () => true : (one) => one === tag, spec);
  const archive = (): Promise<void> => archiveBot(registry, BY, slug, () => true);
  const db = () => registry.storage.read;

  async function kindsOf(bot_id: string): Promise<string[]> {
    const { events } = await readEvents(db(), bot_id, { after_seq: 0, limit: 100 });
    return events.map((event) => event.kind);
  }

  /** Expects the tables to equal the state that follows from the events. */
  async function expectSound({ bot_id }: Bot): Promise<void> {
    const bot = await getBot(db(), bot_id);
    const { state } = await stateAt(db(), bot_id, 'head');
    const versions = (await listVersions(db(), bot_id, PAGE)).items;
    expect(state).toEqual({
      slug: bot.slug,
      name: bot.name,
      kind: bot.kind,
      status: bot.status,
      version: bot.current_version,
      created_at: new Date(bot.created_at).toISOString(),
      updated_at: new Date(bot.updated_at).toISOString(),
      versions: versions.map(({ hash }) => hash).toReversed(),
      sessions: {},
      halted: null,
    });
    expect(await verifyEvents(db(), bot_id)).toMatchObject({ state, fault: undefined });
  }

  test('the registry creates a bot as a draft at version 1', async () => {
    const bot = await create();
    expect(bot).toEqual({
      bot_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      slug,
      name: 'SMA crossover',
      kind: 'trading',
      status: 'draft',
      current_version: 1,
      created_at: world.now,
      updated_at: world.now,
      document: JSON.stringify(exampleDocument(slug, 10)),
      version_hash: specHash(exampleDocument(slug, 10)),
    });
    expect(await getBot(db(), slug)).toEqual(bot);
    expect(await getBot(db(), bot.bot_id)).toEqual(bot);
    expect(await kindsOf(bot.bot_id)).toEqual(['bot.created', 'version.created']);
    const { events } = await readEvents(db(), bot.bot_id, { after_seq: 0, limit: 1 });
    expect(events).toMatchObject([{ payload: { slug, by: BY }, version: 1 }]);
    await expectSound(bot);
  });

  test('the registry adds a version only for a document with another hash', async () => {
    const bot = await create();
    world.now += MINUTE;
    const { document } = sent(10) as { document: object };
    const reordered = Object.fromEntries(Object.entries(document).toReversed());
    expect(await update({ document: reordered })).toEqual(bot);
    expect(await getBot(db(), slug)).toEqual(bot);
    const changed = await update(sent(11));
    expect(changed).toMatchObject({ current_version: 2, updated_at: world.now, status: 'draft' });
    // An older one is a new version, too: what counts is the current one.
    expect(await update(sent(10))).toMatchObject({
      current_version: 3,
      version_hash: bot.version_hash,
    });
    expect(await kindsOf(bot.bot_id)).toEqual([
      'bot.created',
      ...Array.from({ length: 3 }, () => 'version.created'),
    ]);
    await expectSound(bot);
  });

  test('the registry keeps old versions unchanged, and compares two of them', async () => {
    const bot = await create();
    await update(sent(11));
    await update(sent(12));
    const first = await listVersions(db(), slug, { limit: 2 });
    expect(first.items).toMatchObject([{ version: 3, created_by: BY }, { version: 2 }]);
    const cursor = first.next_cursor!;
    const second = await listVersions(db(), slug, { limit: 2, cursor });
    expect(second).toMatchObject({ items: [{ version: 1 }], next_cursor: null });
    expect(await getVersion(db(), slug, 1)).toMatchObject({
      hash: bot.version_hash,
      document: bot.document,
    });
    expect(await diffVersions(db(), slug, 1, 3)).toEqual({
      changes: [{ pointer: '/spec/strategy/params/fast', kind: 'changed', from: 10, to: 12 }],
      files: [],
    });
    expect(await diffVersions(db(), slug, 2, 2)).toEqual({ changes: [], files: [] });
    for (const version of [0, 4, Number.MAX_SAFE_INTEGER]) {
      await expect(getVersion(db(), slug, version)).rejects.toMatchObject({ code: 'not_found' });
    }
  });

  test('the registry renames a bot, and frees its old slug', async () => {
    const bot = await create();
    const other = `${slug}-renamed`;
    const renamed = exampleDocument(other, 10);
    const changed = await update({
      document: { ...renamed, metadata: { name: 'X', slug: other } },
    });
    expect(changed).toMatchObject({ bot_id: bot.bot_id, slug: other, name: 'X' });
    await expect(getBot(db(), slug)).rejects.toMatchObject({ code: 'not_found' });
    expect((await create()).bot_id).not.toBe(bot.bot_id);
    expect(await kindsOf(bot.bot_id)).toEqual([
      'bot.created',
      'version.created',
      'bot.updated',
      'version.created',
    ]);
    await expectSound(bot);
  });

  test('the registry rejects a slug that another bot has, even an archived one', async () => {
    const bot = await create();
    await archive();
    const taken = { code: 'conflict', reason: 'slug_taken' };
    await expect(create()).rejects.toMatchObject({
      ...taken,
      message: expect.stringContaining(bot.bot_id),
    });
    const other = await create(`${slug}-other`);
    const taking = updateBot(registry, BY, other.slug, () => true, sent(11));
    await expect(taking).rejects.toMatchObject({ code: 'conflict' });
    expect(await getBot(db(), other.slug)).toEqual(other);
    await expectSound(other);
  });

  test('the registry keeps an archived bot, and reactivates it with the next update', async () => {
    const bot = await create();
    world.now += MINUTE;
    await archive();
    expect(await getBot(db(), slug)).toEqual({
      ...bot,
      status: 'archived',
      updated_at: world.now,
    });
    world.now += MINUTE;
    await archive();
    await expectSound(bot);
    expect(await kindsOf(bot.bot_id)).toEqual(['bot.created', 'version.created', 'bot.archived']);
    const reordered = Object.fromEntries(Object.entries(exampleDocument(slug, 10)).toReversed());
    const again = await update({ document: reordered });
    expect(again).toMatchObject({ status: 'active', current_version: 1 });
    expect(again).toEqual(await getBot(db(), slug));
    await archive();
    expect(await update(sent(11))).toMatchObject({ status: 'active', current_version: 2 });
    expect((await kindsOf(bot.bot_id)).slice(3)).toEqual([
      'bot.activated',
      'bot.archived',
      'bot.activated',
      'version.created',
    ]);
    await expectSound(bot);
  });

  test('the registry rejects a change without If-Match or with a stale ETag', async () => {
    const bot = await create();
    const changed = await update(sent(11), formatEtag(bot));
    expect(formatEtag(changed)).not.toBe(formatEtag(bot));
    const stale = { code: 'stale', message: expect.stringContaining(formatEtag(changed)) };
    await expect(update(sent(12), formatEtag(bot))).rejects.toMatchObject(stale);
    const old = (tag: string): boolean => tag === formatEtag(bot);
    await expect(archiveBot(registry, BY, slug, old)).rejects.toMatchObject(stale);
    const required = { code: 'precondition_required' };
    const blind = updateBot(registry, BY, slug, undefined, sent(12));
    await expect(blind).rejects.toMatchObject(required);
    await expect(archiveBot(registry, BY, slug, undefined)).rejects.toMatchObject(required);
    expect(await getBot(db(), slug)).toEqual(changed);
    await archive();
    // A client that missed the first answer repeats its request.
    await archiveBot(registry, BY, slug, old);
    await expect(archiveBot(registry, BY, slug, undefined)).rejects.toMatchObject(required);
  });

  test('the registry rejects another kind for a bot', async () => {
    await create();
    const document = exampleDocument(slug, 10);
    const research = { ...document, spec: { ...(document['spec'] as object), kind: 'research' } };
    await expect(update({ document: research })).rejects.toMatchObject({
      code: 'invalid_spec',
      problems: [{ pointer: '/spec/kind', suggestion: 'trading' }],
    });
  });

  test('the registry makes no change whose event cannot be recorded', async () => {
    const bot = await create();
    await world.database.execute('alter table bot_events rename to elsewhere');
    const attempts = [create(`${slug}-other`), update(sent(11)), archive()];
    const refused = await Promise.allSettled(attempts);
    await world.database.execute('alter table elsewhere rename to bot_events');
    expect(refused.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected']);
    expect(await getBot(db(), slug)).toEqual(bot);
    expect((await listVersions(db(), slug, PAGE)).items).toHaveLength(1);
    await expect(getBot(db(), `${slug}-other`)).rejects.toMatchObject({ code: 'not_found' });
  });

  test('the registry lets one of 50 simultaneous changes on two servers succeed in each round', async () => {
    let tag = formatEtag(await create());
    const servers = [registry, kind === 'postgres' ? await world.another() : registry];
    for (const round of [1, 2, 3]) {
      const known = tag;
      const results = await Promise.allSettled(
        Array.from({ length: 50 }, (_, i) =>
          updateBot(servers[i % 2]!, BY, slug, (one) => one === known, {
            document: { ...exampleDocument(slug, 5), metadata: { name: `${round}-${i}`, slug } },
          }),
        ),
      );
      const won = results.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
      expect(won).toHaveLength(1);
      for (const one of results) {
        if (one.status === 'rejected') expect(one.reason).toMatchObject({ code: 'stale' });
      }
      expect(won[0]).toMatchObject({ current_version: round + 1 });
      expect(await getBot(db(), slug)).toEqual(won[0]);
      tag = formatEtag(won[0]!);
    }
    await expectSound(await getBot(db(), slug));
  });

  test('the registry lists bots by slug in pages, with filters', async () => {
    const named = async (as: string, name: string, of = 'trading'): Promise<void> => {
      const document = exampleDocument(as, 10);
      const spec = { ...(document['spec'] as object), kind: of };
      await createBot(registry, BY, {
        document: { ...document, spec, metadata: { name, slug: as } },
      });
    };
    await named('zz-b', 'Fünf 100% ZZ_Top');
    await named('zz-a', 'zz one');
    await named('zz-c', 'zz notes', 'research');
    const slugs = async (filter: Parameters<typeof listBots>[1]): Promise<string[]> =>
      (await listBots(db(), filter, PAGE)).items.map((bot) => bot.slug);

    expect(await slugs({ q: 'zz-' })).toEqual(['zz-a', 'zz-b', 'zz-c']);
    expect(await slugs({ q: 'ZZ' })).toEqual(['zz-a', 'zz-b', 'zz-c']);
    expect(await slugs({ q: 'zz_t' })).toEqual(['zz-b']);
    expect(await slugs({ q: '0%' })).toEqual(['zz-b']);
    expect(await slugs({ q: 'Fünf' })).toEqual(['zz-b']);
    expect(await slugs({ q: '!' })).toEqual([]);
    expect(await slugs({ kind: 'research' })).toEqual(['zz-c']);
    expect(await slugs({ q: 'zz-', status: 'archived' })).toEqual([]);

    const first = await listBots(db(), { q: 'zz-' }, { limit: 2 });
    expect(first.items).toEqual([
      {
        bot_id: expect.any(String),
        slug: 'zz-a',
        name: 'zz one',
        kind: 'trading',
        status: 'draft',
        current_version: 1,
      },
      expect.objectContaining({ slug: 'zz-b' }),
    ]);
    const cursor = first.next_cursor!;
    expect(await listBots(db(), { q: 'zz-' }, { limit: 2, cursor })).toMatchObject({
      items: [{ slug: 'zz-c' }],
      next_cursor: null,
    });
    await expect(listBots(db(), {}, { limit: 2, cursor })).rejects.toMatchObject({
      code: 'invalid_request',
    });
  });
});
