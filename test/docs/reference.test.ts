import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { apiDocument } from '../../docs/generator/api.ts';
import { VARIABLE_NAMES } from '../../docs/generator/settings.ts';
import { environmentName, SETTING_KEYS } from '../../src/base/settings.ts';
import { newTestApp } from '../server/in-process.ts';
import { ROOT } from './documents.ts';

test('the reference has every operation and schema of the OpenAPI document of a server', async () => {
  const server = await newTestApp();
  const served = (await (await server.app.request('/openapi.json')).json()) as Awaited<
    ReturnType<typeof apiDocument>
  >;
  await server.close();
  const { paths, components } = await apiDocument();
  expect(paths).toEqual(served.paths);
  expect(components.schemas).toEqual(served.components.schemas);
});

test('the reference has every environment variable that the code reads', () => {
  const known = new Set<string>([...VARIABLE_NAMES, ...SETTING_KEYS.map(environmentName)]);
  const read = globSync('{src,daemon,bin}/**/*.ts', { cwd: ROOT }).flatMap(
    (file) =>
      readFileSync(join(ROOT, file), 'utf8').match(
        /(?<=['.])(?:SERVICE_[A-Z_]+|DATABASE_URL)\b/g,
      ) ?? [],
  );
  expect(new Set(read).size).toBeGreaterThan(10);
  expect([...new Set(read)].filter((name) => !known.has(name))).toEqual([]);
});
