import type { StepUpAction } from '../../src/base/step-up-actions.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readAudit } from '../../src/identity/audit.ts';
import {
  consumeStepUp,
  grantStepUp,
  purgeStepUps,
  STEP_UP_SECONDS,
} from '../../src/identity/step-up.ts';
import { mainlyOn } from '../storage/databases.ts';
import { newWorld, wrongCodeAt, type Person, type World } from './people.ts';

const ACTION = 'identity.license.revoke' satisfies StepUpAction as StepUpAction;
const TARGET = 'deployment:acme-tokyo';

describe.each(mainlyOn('sqlite'))('a step-up on %s', (kind) => {
  let world: World;
  beforeAll(async () => {
    world = await newWorld(kind);
  });
  afterAll(() => world.close());

  const grant = async (person: Person, code = person.nextCode(), target = TARGET) =>
    grantStepUp(world.identity, await person.admitted('license'), { action: ACTION, target, code });
  const consume = (
    person: Person,
    token: string | undefined,
    { action = ACTION, target = TARGET }: { action?: StepUpAction; target?: string } = {},
  ): Promise<void> =>
    world.identity.storage.write((tx) =>
      consumeStepUp(tx, world.now, person.id, token, action, target),
    );
  const refusedFor = (reason: string) => ({ code: 'step_up_required', reason });

  test('a step-up can be used once', async () => {
    const person = await world.newPerson();
    const { step_up_token, expires_at } = await grant(person);
    expect(expires_at).toBe(world.now + STEP_UP_SECONDS * 1000);
    await consume(person, step_up_token);
    await expect(consume(person, step_up_token)).rejects.toMatchObject(refusedFor('used'));
  });

  test('a step-up that is used in parallel allows one action', async () => {
    const person = await world.newPerson();
    const { step_up_token } = await grant(person);
    const uses = Array.from({ length: 5 }, () => consume(person, step_up_token));
    const results = await Promise.allSettled(uses);
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  test('a step-up stays unused if the transaction fails', async () => {
    const person = await world.newPerson();
    const { step_up_token } = await grant(person);
    const failing = world.identity.storage.write(async (tx) => {
      await consumeStepUp(tx, world.now, person.id, step_up_token, ACTION, TARGET);
      throw new RangeError('no');
    });
    await expect(failing).rejects.toThrow(RangeError);
    await consume(person, step_up_token);
  });

  test('a step-up is valid for five minutes', async () => {
    const person = await world.newPerson();
    const [kept, late] = [await grant(person), await grant(person)];
    world.now = kept.expires_at - 1;
    await consume(person, kept.step_up_token);
    world.now = late.expires_at;
    await expect(consume(person, late.step_up_token)).rejects.toMatchObject(refusedFor('expired'));
  });

  test('a step-up is bound to its administrator, action and target', async () => {
    const [person, other] = [await world.newPerson(), await world.newPerson()];
    const { step_up_token: token } = await grant(person);
    await expect(consume(other, token)).rejects.toMatchObject(refusedFor('other_administrator'));
    const target = `${TARGET}-2`;
    await expect(consume(person, token, { target })).rejects.toMatchObject(
      refusedFor('other_target'),
    );
    const action = 'identity.license.burn' as StepUpAction;
    await expect(consume(person, token, { action })).rejects.toMatchObject(
      refusedFor('other_action'),
    );
    await consume(person, token);
  });

  test.each([
    [undefined, 'missing'],
    ['', 'unknown'],
    [`sls_${'A'.repeat(43)}`, 'unknown'],
  ])('%j is not a step-up', async (token, reason) => {
    await expect(consume(await world.newPerson(), token)).rejects.toMatchObject(refusedFor(reason));
  });

  test('a step-up accepts a code or recovery code once, and is recorded', async () => {
    const person = await world.newPerson();
    const code = person.nextCode();
    await grant(person, code);
    const wrong = { code: 'not_authenticated', reason: 'wrong_code' };
    await expect(grant(person, code)).rejects.toMatchObject(wrong);
    await grant(person, person.recovery_codes[0]);
    const { entries } = await readAudit(world.identity.storage.read, 0, 1000);
    const own = entries.filter(({ actor }) => actor === `administrator:${person.id}`);
    const details = { action: ACTION, token_id: expect.any(String) as string };
    expect(own).toMatchObject([
      {
        action: 'admin.identity.administrator.step_up',
        target: TARGET,
        details: { ...details, second_factor: 'totp' },
      },
      { action: 'admin.identity.administrator.step_up_failed', target: TARGET, details },
      {
        action: 'admin.identity.administrator.step_up',
        target: TARGET,
        details: { ...details, second_factor: 'recovery_code' },
      },
    ]);
  });

  test('step-ups are refused after five wrong codes, also if they are sent in parallel', async () => {
    const person = await world.newPerson();
    const wrong = wrongCodeAt(person.totp_secret, world.now);
    const results = await Promise.allSettled(
      Array.from({ length: 12 }, () => grant(person, wrong)),
    );
    const reasons = results.map((result) => (result as PromiseRejectedResult).reason as unknown);
    for (const [i, reason] of reasons.entries()) {
      expect(reason).toMatchObject(
        i < 5 ? { reason: 'wrong_code' } : { code: 'rate_limited', retryAfterSeconds: 900 },
      );
    }
    world.now += 900_000;
    await grant(person);
  });

  test('a step-up is deleted one day after its end', async () => {
    const person = await world.newPerson();
    await grant(person);
    const { storage } = world.identity;
    const count = async (): Promise<number> => {
      await storage.write((tx) => purgeStepUps(tx, world.now));
      const rows = storage.read.selectFrom('step_ups').select('token_hash');
      return (await rows.where('administrator_id', '=', person.id).execute()).length;
    };
    world.now += (STEP_UP_SECONDS + 86_400) * 1000 - 1;
    expect(await count()).toBe(1);
    world.now += 1;
    expect(await count()).toBe(0);
  });

  test('a step-up needs the scope and a valid target of its action', async () => {
    const person = await world.newPerson();
    const request = { action: ACTION, target: TARGET, code: person.nextCode() };
    const caller = await person.admitted('admin', 'read', 'write', 'trade', 'halt');
    const unscoped = grantStepUp(world.identity, caller, request);
    await expect(unscoped).rejects.toMatchObject({ code: 'not_allowed' });
    for (const target of ['', 'acme-tokyo', 'customer:acme', 'lease:', 'lease:a\u0000']) {
      const attempt = grant(person, request.code, target);
      await expect(attempt).rejects.toMatchObject({ code: 'invalid_request' });
    }
    await grant(person, request.code, 'lease:1');
  });

  test('a token that was revoked while the request waited gets no step-up', async () => {
    const person = await world.newPerson();
    const caller = await person.admitted('license');
    const { storage } = world.identity;
    const request = { action: ACTION, target: TARGET, code: person.nextCode() } as const;
    await storage.write((tx) =>
      tx
        .updateTable('api_tokens')
        .set({ revoked_at: world.now })
        .where('token_id', '=', caller.token_id)
        .execute(),
    );
    await expect(grantStepUp(world.identity, caller, request)).rejects.toMatchObject({
      code: 'not_authenticated',
      reason: 'revoked_token',
    });
  });
});
