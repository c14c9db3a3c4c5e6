import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { resetAdministrator } from '../../src/identity/administrators.ts';
import { MOST_KNOWN_NETWORKS, purgeKnownNetworks } from '../../src/identity/failed-tries.ts';
import { login } from '../../src/identity/login.ts';
import { newTotpSecret } from '../../src/identity/totp.ts';
import { DATABASES } from '../storage/databases.ts';
import { MINUTE, newWorld, PASSWORD, type Person, type World } from './people.ts';

const DAY = 24 * 60 * MINUTE;

describe.each(DATABASES)('failed tries on %s', (kind) => {
  let world: World;
  beforeAll(async () => {
    world = await newWorld(kind);
  });
  afterAll(() => world.close());

  const logIn = async (person: Person, network: string, wrong: object = {}): Promise<string> => {
    const credentials = { ...person.credentials(wrong), network };
    return login(world.identity, credentials, async () => 'in').catch(
      (error: { reason: string }) => error.reason,
    );
  };
  const guess = (person: Person, network: string): Promise<string> =>
    logIn(person, network, { password: 'a wrong password', code: '000000' });

  test('failures on two servers count together: five from one network, 20 from all', async () => {
    const person = await world.newPerson();
    const servers = [world.identity, kind === 'postgres' ? await world.another() : world.identity];
    const inParallel = (networks: readonly string[]): Promise<string[]> =>
      Promise.all(
        networks.map(async (network, i) => {
          const wrong = { password: 'a wrong password', code: '000000', network };
          return login(servers[i % 2]!, person.credentials(wrong), async () => 'in').catch(
            (error: { reason?: string; code: string }) => error.reason ?? error.code,
          );
        }),
      );
    const isWrong = (reason: string): boolean => reason === 'wrong_credentials';
    const one = await inParallel(Array<string>(10).fill('10.0.0.1'));
    expect(one.filter(isWrong)).toHaveLength(5);
    // At most 20 passwords wait at a time.
    const others = await inParallel(Array.from({ length: 20 }, (_, i) => `10.0.1.${i}`));
    const later = [];
    for (let i = 0; i < 25; i++) later.push(await guess(person, `10.0.2.${i}`));
    expect([...one, ...others, ...later].filter(isWrong)).toHaveLength(20);
    expect(later.at(-1)).toBe('all_addresses');
  });

  test('failures from elsewhere do not block the ten networks that the administrator used last', async () => {
    const person = await world.newPerson();
    for (let i = 0; i <= MOST_KNOWN_NETWORKS; i++) {
      expect(await logIn(person, `192.0.2.${i}`)).toBe('in');
    }
    for (let i = 0; i < 20; i++) await guess(person, `10.0.3.${i}`);
    expect(await logIn(person, '192.0.2.0')).toBe('all_addresses');
    expect(await logIn(person, '192.0.2.1')).toBe('in');
    expect(await logIn(person, `192.0.2.${MOST_KNOWN_NETWORKS}`)).toBe('in');
    const { storage } = world.identity;
    const known = () =>
      storage.read
        .selectFrom('known_networks')
        .select('network')
        .where('administrator_id', '=', person.id)
        .execute();
    expect(await known()).toHaveLength(MOST_KNOWN_NETWORKS);
    await storage.write((tx) => purgeKnownNetworks(tx, world.now + 90 * DAY));
    expect(await known()).toEqual([]);
  });

  test('a reset deletes the failures and known networks of the administrator', async () => {
    const person = await world.newPerson();
    expect(await logIn(person, '192.0.2.1')).toBe('in');
    for (let i = 0; i < 20; i++) await guess(person, `10.0.4.${i}`);
    const { secret } = newTotpSecret(person.name);
    const factors = { password: PASSWORD, totp_secret: secret, totp_last_step: 0 };
    await resetAdministrator(world.identity, person.name, factors);
    for (let i = 0; i < 20; i++) {
      expect(await guess(person, `10.0.5.${i}`)).toBe('wrong_credentials');
    }
    expect(await guess(person, '192.0.2.1')).toBe('all_addresses');
  });

  test('failures are deleted after 15 minutes', async () => {
    const person = await world.newPerson();
    for (let i = 0; i < 20; i++) await guess(person, `10.0.6.${i}`);
    world.now += 15 * MINUTE;
    await guess(person, '10.0.7.1');
    const rows = await world.identity.storage.read
      .selectFrom('failed_tries')
      .select('network')
      .execute();
    expect(rows).toEqual([{ network: '10.0.7.1' }]);
  });
});
