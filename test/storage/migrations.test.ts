import { expect, it } from 'vitest';
import { CONTRACT_STEPS } from '../../src/storage/contract-steps.ts';
import { textFor } from '../../src/storage/migrate.ts';
import { MIGRATIONS } from '../../src/storage/migrations.ts';

it('every migration except a contract step only adds tables, columns and rows, or drops foreign keys or non-unique indexes', () => {
  const texts = MIGRATIONS.flatMap(({ statements }) =>
    statements.map((one) => textFor(one, 'postgres') ?? ''),
  );
  const indexes = texts.map((text) => /^create index (\w+) on/.exec(text)?.[1]);
  for (const migration of MIGRATIONS) {
    if (migration.name in CONTRACT_STEPS) continue;
    for (const statement of migration.statements) {
      const text = textFor(statement, 'postgres') ?? textFor(statement, 'sqlite')!;
      const dropped = /^drop index (\w+)$/.exec(text)?.[1];
      if (dropped !== undefined) {
        expect(indexes, migration.name).toContain(dropped);
        continue;
      }
      expect(text, migration.name).toMatch(
        /^(create|insert into|alter table \w+\s+(add column|(drop constraint \w+_fkey,?\s*)+$))\s?/,
      );
      if (/add column.*not null/.test(text))
        expect(text, migration.name).toMatch(/default|generated/);
    }
  }
  const names = MIGRATIONS.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(Object.keys(CONTRACT_STEPS)));
});
