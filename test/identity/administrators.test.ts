import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  addAdministrator,
  checkNewName,
  disableAdministrator,
  listAdministrators,
  resetAdministrator,
} from '../../src/identity/administrators.ts';
import { readAudit, type AuditEntry } from '../../src/identity/audit.ts';
import { login, type Credentials } from '../../src/identity/login.ts';
import { grantStepUp, type StepUp } from '../../src/identity/step-up.ts';
import { authenticateToken, createToken } from '../../src/identity/tokens.ts';
import { newTotpSecret } from '../../src/identity/totp.ts';
import type { Tables } from '../../src/storage/tables.ts';
import { mainlyOn } from '../storage/databases.ts';
import {
  codeAt,
  MINUTE,
  newWorld,
  PASSWORD,
  wrongCodeAt,
  type Person,
  type World,
} from './people.ts';

const WRONG = {
  code: 'not_authenticated',
  reason: 'wrong_credentials',
  message: 'name, password or code is wrong',
  remedy:
    'Check name, password and code; each code works once. ' +
    'After 5 failed logins, your address is blocked for 15 minutes.',
};
const limited = (retryAfterSeconds: number) => ({ code: 'rate_limited', retryAfterSeconds });

describe.each(mainlyOn('sqlite'))('administrators on %s', (kind) => {
  let world: World;
  beforeAll(async () => {
    world = await newWorld(kind);
  });
  afterAll(() => world.close());

  const logIn = (credentials: Credentials): Promise<string> =>
    login(world.identity, credentials, async (_tx, _now, id) => id);
  const guess = (person: Person): Credentials =>
    person.credentials({ password: 'a wrong password', code: '000000' });
  const fail = async (person: Person, times: number): Promise<void> => {
    for (let i = 0; i < times; i++) await expect(logIn(guess(person))).rejects.toMatchObject(WRONG);
  };
  const stepUp = async (person: Person, code: string): Promise<StepUp> =>
    grantStepUp(world.identity, await person.admitted('license'), {
      action: 'identity.license.revoke',
      target: 'deployment:acme-tokyo',
      code,
    });
  const auditOf = async (id: string): Promise<Partial<AuditEntry>[]> => {
    const { entries } = await readAudit(world.identity.storage.read, 0, 10_000);
    const own = entries.filter((entry) => JSON.stringify(entry).includes(id));
    return own.map(({ actor, action, target, details }) => ({ actor, action, target, details }));
  };

  describe('an operator', () => {
    const factorsOf = (name: string) => {
      const { secret } = newTotpSecret(name);
      return { password: PASSWORD, totp_secret: secret, totp_last_step: 0 };
    };

    test('an added administrator can log in at once and has a first token', async () => {
      const factors = factorsOf('ada');
      const terms = { label: 'first', scopes: ['license'], expires_in_seconds: 86_400 } as const;
      const enrolled = await addAdministrator(world.identity, 'ada', factors, terms);
      const id = enrolled.administrator_id;
      expect(new Set(enrolled.recovery_codes).size).toBe(10);
      for (const code of enrolled.recovery_codes)
        expect(code).toMatch(/^[0-9A-Z]{4}(-[0-9A-Z]{4}){6}$/);
      const code = codeAt(factors.totp_secret, world.now);
      expect(await logIn({ name: 'ada', password: PASSWORD, code })).toBe(id);
      const { token } = enrolled.token!;
      expect(await authenticateToken(world.identity.storage.read, world.now, token)).toEqual({
        administrator_id: id,
        token_id: enrolled.token!.token_id,
        scopes: new Set(['license']),
      });
      const target = `administrator:${id}`;
      expect(await auditOf(id)).toMatchObject([
        {
          actor: 'operator',
          action: 'admin.identity.administrator.add',
          target,
          details: { name: 'ada' },
        },
        { actor: 'operator', action: 'admin.identity.token.create' },
        {
          actor: target,
          action: 'admin.identity.administrator.login',
          target,
          details: { second_factor: 'totp' },
        },
      ]);
    });

    test('names that exist or look like another, and weak passwords, are refused', async () => {
      await addAdministrator(world.identity, 'bob', factorsOf('bob'));
      const add = (name: string, password = PASSWORD): Promise<unknown> =>
        addAdministrator(world.identity, name, { ...factorsOf(name), password });
      await expect(add('bob')).rejects.toMatchObject({ code: 'conflict' });
      for (const name of ['', 'Bob', 'bоb', 'bob ', '-bob', 'x'.repeat(65), 'b\u0000']) {
        await expect(add(name)).rejects.toMatchObject({ code: 'usage' });
        const check = checkNewName(world.identity.storage.read, name);
        await expect(check).rejects.toMatchObject({ code: 'usage' });
      }
      await expect(add('carol', 'short')).rejects.toMatchObject({ code: 'usage' });
      await checkNewName(world.identity.storage.read, 'carol');
    });

    test('the list contains the count of unused recovery codes', async () => {
      const person = await world.newPerson();
      const created_at = world.now;
      await logIn(person.credentials({ code: person.recovery_codes[3]! }));
      expect(await listAdministrators(world.identity.storage.read)).toContainEqual({
        administrator_id: person.id,
        name: person.name,
        created_at,
        disabled_at: null,
        recovery_codes: 9,
      });
    });

    test('a disabled administrator can neither log in nor use tokens', async () => {
      const person = await world.newPerson();
      const token = await person.token('license');
      await disableAdministrator(world.identity, person.name);
      const again = disableAdministrator(world.identity, person.name);
      await expect(again).resolves.toBeUndefined();
      await expect(logIn(person.credentials())).rejects.toMatchObject(WRONG);
      const use = authenticateToken(world.identity.storage.read, world.now, token);
      await expect(use).rejects.toMatchObject({
        code: 'not_authenticated',
        reason: 'administrator_disabled',
      });
      const target = `administrator:${person.id}`;
      expect((await auditOf(person.id)).slice(-2)).toEqual([
        {
          actor: 'operator',
          action: 'admin.identity.administrator.disable',
          target,
          details: { name: person.name },
        },
        {
          actor: 'server',
          action: 'admin.identity.administrator.login_failed',
          target,
          details: { wrong: 'disabled', network: '' },
        },
      ]);
    });

    test('a reset ends all former credentials, lifts the limit and enables the administrator', async () => {
      const person = await world.newPerson();
      const token = await person.token('license');
      await stepUp(person, person.nextCode());
      await fail(person, 5);
      await disableAdministrator(world.identity, person.name);
      const factors = { ...factorsOf(person.name), password: 'another good password' };
      const { recovery_codes } = await resetAdministrator(world.identity, person.name, factors);

      const { read } = world.identity.storage;
      await expect(authenticateToken(read, world.now, token)).rejects.toMatchObject({
        reason: 'revoked_token',
      });
      const grants = read.selectFrom('step_ups').where('administrator_id', '=', person.id);
      expect(await grants.selectAll().execute()).toEqual([]);
      const renewed = {
        name: person.name,
        password: 'another good password',
        code: recovery_codes[0]!,
      };
      const stale: Partial<Credentials>[] = [
        { password: PASSWORD },
        { code: person.nextCode() },
        { code: person.recovery_codes[0]! },
      ];
      for (const old of stale) {
        await expect(logIn({ ...renewed, ...old })).rejects.toMatchObject(WRONG);
      }
      expect(await logIn(renewed)).toBe(person.id);
      expect((await auditOf(person.id)).find(({ action }) => action!.endsWith('reset'))).toEqual({
        actor: 'operator',
        action: 'admin.identity.administrator.reset',
        target: `administrator:${person.id}`,
        details: { name: person.name, was_disabled: true },
      });
    });

    test('disabling or resetting an unknown name is an error', async () => {
      const unknown = { code: 'not_found' };
      const { identity } = world;
      await expect(disableAdministrator(identity, 'nobody')).rejects.toMatchObject(unknown);
      const reset = resetAdministrator(identity, 'nobody', factorsOf('nobody'));
      await expect(reset).rejects.toMatchObject(unknown);
    });
  });

  describe('a login', () => {
    test('a failed login has the same error whatever was wrong, and only the audit log says what', async () => {
      const person = await world.newPerson();
      const wrong: Partial<Credentials>[] = [
        { password: `${PASSWORD}!` },
        { password: '' },
        { code: wrongCodeAt(person.totp_secret, world.now) },
        { name: 'nobody-at-all' },
        { name: `${person.name}\u0000` },
      ];
      for (const part of wrong) {
        const attempt = logIn(person.credentials(part));
        await expect(attempt).rejects.toMatchObject({ ...WRONG, retryAfterSeconds: undefined });
      }
      const failed = await auditOf(person.id);
      expect(failed.map(({ details }) => details!['wrong'])).toEqual([
        'password',
        'password',
        'code',
      ]);
    });

    test('a login accepts each code once and no older code', async () => {
      const person = await world.newPerson();
      const code = person.nextCode();
      const earlier = codeAt(person.totp_secret, world.now - 30_000);
      const later = codeAt(person.totp_secret, world.now + 30_000);
      expect(
        await logIn(person.credentials({ code: ` ${code.slice(0, 3)} ${code.slice(3)}` })),
      ).toBe(person.id);
      await expect(logIn(person.credentials({ code }))).rejects.toMatchObject(WRONG);
      await expect(logIn(person.credentials({ code: earlier }))).rejects.toMatchObject(WRONG);
      expect(await logIn(person.credentials({ code: later }))).toBe(person.id);
    });

    test('a login accepts a recovery code once and only from its owner', async () => {
      const [person, other] = [await world.newPerson(), await world.newPerson()];
      const code = person.recovery_codes[7]!;
      await expect(logIn(other.credentials({ code }))).rejects.toMatchObject(WRONG);
      const typed = code.toLowerCase().replaceAll('-', ' ').replaceAll('0', 'o');
      expect(await logIn(person.credentials({ code: typed }))).toBe(person.id);
      await expect(logIn(person.credentials({ code }))).rejects.toMatchObject(WRONG);
      expect(await auditOf(person.id)).toMatchObject([
        { details: { second_factor: 'recovery_code' } },
        { details: { wrong: 'code' } },
      ]);
    });

    test('a login whose effect fails does not use up the code', async () => {
      const person = await world.newPerson();
      const credentials = person.credentials();
      const failing = login(world.identity, credentials, () =>
        Promise.reject(new RangeError('no')),
      );
      await expect(failing).rejects.toThrow(new RangeError('no'));
      expect(await auditOf(person.id)).toEqual([]);
      expect(await logIn(credentials)).toBe(person.id);
    });
  });

  describe('the limit', () => {
    test('the limit is five failures in 15 minutes, and blocked attempts do not prolong it', async () => {
      const person = await world.newPerson();
      await fail(person, 2);
      world.now += 5 * MINUTE;
      await fail(person, 3);
      await expect(logIn(person.credentials())).rejects.toMatchObject(limited(570));
      world.now += 9 * MINUTE + 29_999;
      await expect(logIn(guess(person))).rejects.toMatchObject(limited(1));
      world.now += 1;
      // The first two failures have expired.
      await fail(person, 2);
      await expect(logIn(guess(person))).rejects.toMatchObject(limited(300));
      world.now += 5 * MINUTE;
      const code = codeAt(person.totp_secret, world.now);
      expect(await logIn(person.credentials({ code }))).toBe(person.id);
    });

    test('a successful login resets the count of failures', async () => {
      const person = await world.newPerson();
      await fail(person, 4);
      await logIn(person.credentials());
      await fail(person, 4);
      expect(await logIn(person.credentials())).toBe(person.id);
    });

    test('unknown names have the same limit', async () => {
      const nobody = { name: `nobody-${world.now}`, password: PASSWORD, code: '123456' };
      for (let i = 0; i < 5; i++) await expect(logIn(nobody)).rejects.toMatchObject(WRONG);
      await expect(logIn(nobody)).rejects.toMatchObject(limited(900));
    });

    test.each([
      ['passwords', (person: Person) => guess(person)],
      ['codes', (p: Person) => p.credentials({ code: wrongCodeAt(p.totp_secret, world.now) })],
    ])(
      'the limit holds for %s guessed in parallel on two servers',
      async (_what, credentialsOf) => {
        const person = await world.newPerson();
        // SQLite does not support two connections of one process that write in parallel.
        const servers = [
          world.identity,
          kind === 'postgres' ? await world.another() : world.identity,
        ];
        const guesses = Array.from({ length: 20 }, (_, i) =>
          login(servers[i % 2]!, credentialsOf(person), async () => 'in'),
        );
        const results = await Promise.allSettled(guesses);
        const codes = results.map((result) =>
          result.status === 'rejected' ? (result.reason as { code: string }).code : 'in',
        );
        expect(Object.fromEntries(Map.groupBy(codes, (code) => code))).toMatchObject({
          not_authenticated: { length: 5 },
          rate_limited: { length: 15 },
        });
      },
    );

    test('a correct code that is sent several times in parallel works once', async () => {
      const person = await world.newPerson();
      const credentials = person.credentials();
      const results = await Promise.allSettled(Array.from({ length: 5 }, () => logIn(credentials)));
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    });

    test('failed logins do not block step-ups', async () => {
      const person = await world.newPerson();
      await fail(person, 5);
      const granted = await stepUp(person, person.nextCode());
      expect(granted.step_up_token).toMatch(/^sls_/);
    });

    test('wrong codes of logins and step-ups count together', async () => {
      const person = await world.newPerson();
      const wrong = wrongCodeAt(person.totp_secret, world.now);
      for (let i = 0; i < 3; i++) {
        await expect(stepUp(person, wrong)).rejects.toMatchObject({ reason: 'wrong_code' });
      }
      for (let i = 0; i < 2; i++) {
        await expect(logIn(person.credentials({ code: wrong }))).rejects.toMatchObject(WRONG);
      }
      await expect(stepUp(person, person.nextCode())).rejects.toMatchObject(limited(870));
      await expect(logIn(person.credentials())).rejects.toMatchObject(WRONG);
    });

    test('the limit on codes reveals neither the name nor the password at a login', async () => {
      const person = await world.newPerson();
      const wrong = wrongCodeAt(person.totp_secret, world.now);
      for (let i = 0; i < 5; i++) {
        await expect(stepUp(person, wrong)).rejects.toMatchObject({ reason: 'wrong_code' });
      }
      const attempts: Partial<Credentials>[] = [
        { name: `nobody-${world.now}` },
        { password: 'a wrong password' },
        { code: wrong },
        {},
      ];
      for (const part of attempts) {
        const refused = await logIn(person.credentials(part)).catch((error: unknown) => error);
        expect(refused).toMatchObject({ ...WRONG, retryAfterSeconds: undefined });
      }
      const failed = (await auditOf(person.id)).slice(-3).map(({ details }) => details!['wrong']);
      expect(failed).toEqual(['password', 'code_limit', 'code_limit']);
      world.now += 15 * MINUTE;
      expect(await logIn(person.credentials())).toBe(person.id);
    });
  });

  test('secrets that are shown once are not in the database', async () => {
    const person = await world.newPerson();
    const { token } = await createToken(world.identity, person.credentials(), {
      label: 'secret?',
      scopes: ['admin'],
      expires_in_seconds: 3600,
    });
    const { step_up_token } = await stepUp(person, person.recovery_codes[0]!);
    await fail(person, 1);
    const { read } = world.identity.storage;
    const names: (keyof Tables)[] = [
      'administrators',
      'api_tokens',
      'audit_entries',
      'failed_tries',
      'recovery_codes',
      'step_ups',
    ];
    const tables = await Promise.all(
      names.map((name) => read.selectFrom(name).selectAll().execute()),
    );
    const text = JSON.stringify(tables);
    expect(text).toContain('secret?');
    const secrets = [PASSWORD, token.slice(-43), step_up_token, 'a wrong password'];
    for (const secret of [...secrets, ...person.recovery_codes]) expect(text).not.toContain(secret);
  });
});
