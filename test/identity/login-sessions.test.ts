import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { getAccount, resetAdministrator } from '../../src/identity/administrators.ts';
import { checkPasskey, newChallenge, purgeChallenges } from '../../src/identity/passkey-proof.ts';
import {
  authenticateSession,
  endSessions,
  listSessions,
  purgeSessions,
  rotateSession,
  signIn,
} from '../../src/identity/login-sessions.ts';
import { mainlyOn } from '../storage/databases.ts';
import { newAuthenticator } from './authenticator.ts';
import { newWorld, PASSWORD, type World } from './people.ts';

const BROWSER = { user_agent: 'Firefox/1 Linux', address: null };
const ENDED = { code: 'not_authenticated', reason: 'session_ended' };

describe.each(mainlyOn('sqlite'))('a session on %s', (kind) => {
  let world: World;
  beforeAll(async () => {
    world = await newWorld(kind);
  });
  afterAll(() => world.close());

  test('a login session is opened, rotated, listed and deleted, and ends when credentials are reset', async () => {
    const { identity } = world;
    const { storage } = identity;
    const ada = await world.newPerson();
    const first = await signIn(identity, ada.credentials(), BROWSER);
    const { caller, name } = await authenticateSession(identity, first);
    expect(name).toBe(ada.name);
    const second = await rotateSession(identity, caller.session_id);
    await expect(authenticateSession(identity, first)).rejects.toMatchObject(ENDED);
    const { items } = await listSessions(identity, caller, { limit: 10, administrator_id: ada.id });
    expect(items).toMatchObject([{ administrator: ada.name, signed_in_with: 'password' }]);
    expect(await getAccount(storage.read, ada.id)).toMatchObject({
      recovery_codes: 10,
      passkeys: 0,
    });

    world.now += 60_000;
    expect((await authenticateSession(identity, second)).caller).toEqual(caller);
    await storage.write((tx) => purgeSessions(tx, world.now));
    const factors = { password: PASSWORD, totp_secret: ada.totp_secret, totp_last_step: 0 };
    await resetAdministrator(identity, ada.name, factors);
    await expect(authenticateSession(identity, second)).rejects.toMatchObject(ENDED);
    expect(await endSessions(identity, caller)).toBe(0);
  });

  test('a challenge can be used once, also by requests in parallel', async () => {
    const { identity } = world;
    const use = { purpose: 'sign_in' } as const;
    const signed = newAuthenticator('https://a.example').sign(await newChallenge(identity, use));
    const tries = Array.from({ length: 3 }, () =>
      checkPasskey(identity, signed, use, ['https://a.example']),
    );
    const reasons = (await Promise.allSettled(tries)).map(
      (one) => (one as PromiseRejectedResult).reason as { reason: string },
    );
    // The first request uses up the challenge; its passkey is unknown.
    expect(reasons.map(({ reason }) => reason).sort()).toEqual([
      'challenge_expired',
      'challenge_expired',
      'wrong_passkey',
    ]);
    await identity.storage.write((tx) => purgeChallenges(tx, world.now));
  });
});
