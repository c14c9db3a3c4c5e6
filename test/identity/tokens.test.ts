import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readAudit } from '../../src/identity/audit.ts';
import {
  addToken,
  authenticateToken,
  createToken,
  listTokens,
  requireScope,
  revokeToken,
  type Caller,
  type NewToken,
  type TokenTerms,
} from '../../src/identity/tokens.ts';
import { SCOPES, type Scope } from '../../src/base/scopes.ts';
import { mainlyOn } from '../storage/databases.ts';
import { newWorld, type Person, type World } from './people.ts';

const DAY = 86_400;
const TERMS: TokenTerms = { label: 'CI', scopes: ['license'], expires_in_seconds: DAY };

describe.each(mainlyOn('sqlite'))('tokens on %s', (kind) => {
  let world: World;
  beforeAll(async () => {
    world = await newWorld(kind);
  });
  afterAll(() => world.close());

  const add = (person: Person, terms: Partial<TokenTerms> = {}): Promise<NewToken> =>
    world.identity.storage.write((tx) =>
      addToken(tx, world.now, 'operator', person.id, { ...TERMS, ...terms }),
    );
  const use = (token: string): Promise<Caller> =>
    authenticateToken(world.identity.storage.read, world.now, token);
  const refusedFor = (reason: string) => ({ code: 'not_authenticated', reason });

  test('a login creates a token with exactly these scopes and returns it once', async () => {
    const person = await world.newPerson();
    const scopes: Scope[] = ['license', 'halt', 'license'];
    const made = await createToken(world.identity, person.credentials(), { ...TERMS, scopes });
    const { token, ...state } = made;
    expect(token).toMatch(/^slt_[0-9a-f]{32}_[\w-]{43}$/);
    expect(state).toEqual({
      token_id: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      administrator_id: person.id,
      administrator: person.name,
      label: 'CI',
      scopes: ['halt', 'license'],
      created_at: world.now,
      expires_at: world.now + DAY * 1000,
      revoked_at: null,
      narrowing: { deployment_ids: null, customer_id: null, max_ttl_seconds: null },
    });
    expect(await use(token)).toEqual({
      administrator_id: person.id,
      token_id: state.token_id,
      scopes: new Set(['halt', 'license']),
    });
    const listed = await listTokens(world.identity.storage.read, person.caller(), { limit: 10 });
    expect(listed).toEqual({ items: [state], next_cursor: null });
    const { entries } = await readAudit(world.identity.storage.read, 0, 1000);
    expect(entries.at(-1)).toMatchObject({
      actor: `administrator:${person.id}`,
      action: 'admin.identity.token.create',
      target: `token:${state.token_id}`,
      details: { administrator_id: person.id, label: 'CI', scopes: ['halt', 'license'] },
    });
  });

  test.each<[string, Partial<TokenTerms>, string]>([
    ['no scope', { scopes: [] }, '/scopes'],
    ['an unknown scope', { scopes: ['root' as Scope] }, '/scopes'],
    ['more than a year', { expires_in_seconds: 365 * DAY + 1 }, '/expires_in_seconds'],
    ['less than a minute', { expires_in_seconds: 59 }, '/expires_in_seconds'],
    ['part of a second', { expires_in_seconds: 60.5 }, '/expires_in_seconds'],
    ['two lines', { label: 'a\nb' }, '/label'],
    ['a NUL', { label: 'a\u0000' }, '/label'],
    ['half a character', { label: '\uD83D' }, '/label'],
    ['no label', { label: ' ' }, '/label'],
  ])('%s is refused before the login, which uses up nothing', async (_what, wrong, pointer) => {
    const person = await world.newPerson();
    const made = createToken(world.identity, person.credentials(), { ...TERMS, ...wrong });
    await expect(made).rejects.toMatchObject({ code: 'invalid_request', problems: [{ pointer }] });
    const row = await world.identity.storage.read
      .selectFrom('administrators')
      .select('totp_last_step')
      .where('administrator_id', '=', person.id)
      .executeTakeFirst();
    expect(row).toEqual({ totp_last_step: 0 });
  });

  test('texts that resemble a token are refused', async () => {
    const person = await world.newPerson();
    const { token } = await add(person);
    const other = (await add(person)).token;
    const [id, secret] = [token.slice(4, 36), token.slice(-43)];
    const wrong = [
      '',
      'slt_',
      secret,
      `${token}A`,
      token.slice(0, -1),
      token.toUpperCase(),
      `slt_${id}_${'A'.repeat(43)}`,
      `slt_${id}_${other.slice(-43)}`,
      `slt_${'0'.repeat(32)}_${secret}`,
      `slt_${id}_${secret.slice(0, -1)}\u0000`,
    ];
    for (const text of wrong)
      await expect(use(text)).rejects.toMatchObject(refusedFor('unknown_token'));
    expect(await use(token)).toMatchObject({ administrator_id: person.id });
  });

  test('a token expires to the millisecond', async () => {
    const { token } = await add(await world.newPerson(), { expires_in_seconds: 60 });
    world.now += 59_999;
    await use(token);
    world.now += 1;
    await expect(use(token)).rejects.toMatchObject(refusedFor('expired_token'));
  });

  test('a token can be revoked by its owner or with the scope admin', async () => {
    const [owner, other] = [await world.newPerson(), await world.newPerson()];
    const [one, two] = [await add(owner), await add(owner)];
    const stranger = other.caller('license', 'read', 'write', 'trade', 'halt');
    const { identity } = world;
    const stolen = revokeToken(identity, stranger, one.token_id);
    await expect(stolen).rejects.toMatchObject({ code: 'not_found' });
    const unknown = revokeToken(identity, other.caller('admin'), 'no-such-token');
    await expect(unknown).rejects.toMatchObject({ code: 'not_found' });
    await use(one.token);

    const revoked_at = world.now;
    const { token: _, ...state } = one;
    expect(await revokeToken(identity, owner.caller(), one.token_id)).toEqual({
      ...state,
      revoked_at,
    });
    await revokeToken(identity, other.caller('admin'), two.token_id);
    world.now += 1000;
    const again = await revokeToken(identity, owner.caller(), one.token_id);
    expect(again.revoked_at).toBe(revoked_at);
    for (const { token } of [one, two]) {
      await expect(use(token)).rejects.toMatchObject(refusedFor('revoked_token'));
    }
    const { entries } = await readAudit(identity.storage.read, 0, 1000);
    const revocations = entries.filter(
      ({ action, target }) =>
        action === 'admin.identity.token.revoke' && target === `token:${one.token_id}`,
    );
    expect(revocations).toHaveLength(1);
  });

  test('a list contains the tokens that the caller may see, oldest first', async () => {
    const [person, other] = [await world.newPerson(), await world.newPerson()];
    const made: NewToken[] = [];
    for (let i = 0; i < 5; i++) {
      made.push(await add(person));
      await add(other);
      world.now += 1;
    }
    const { read } = world.identity.storage;
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page = await listTokens(read, person.caller('license'), { limit: 2, cursor });
      seen.push(...page.items.map(({ token_id }) => token_id));
      cursor = page.next_cursor ?? undefined;
    } while (cursor !== undefined);
    expect(seen).toEqual(made.map(({ token_id }) => token_id));

    const all = await listTokens(read, person.caller('admin'), { limit: 1000 });
    const owners = new Set(all.items.map(({ administrator_id }) => administrator_id));
    expect(owners).toContain(other.id);
    const first = await listTokens(read, person.caller('admin'), { limit: 1 });
    const misused = listTokens(read, person.caller(), { limit: 1, cursor: first.next_cursor! });
    await expect(misused).rejects.toMatchObject({ code: 'invalid_request' });
  });
});

test.each(SCOPES)('the scope %s implies no other', (scope) => {
  const caller = { administrator_id: 'a', token_id: 't', scopes: new Set([scope]) };
  for (const needed of SCOPES) {
    let refusal: unknown;
    try {
      requireScope(caller, needed);
    } catch (error) {
      refusal = error;
    }
    if (needed === scope) expect(refusal).toBeUndefined();
    else expect(refusal).toMatchObject({ code: 'not_allowed' });
  }
});
