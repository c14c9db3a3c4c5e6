import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { ServiceError } from '../../src/base/errors.ts';
import { plainUrl, readYamlFile } from '../../src/base/yaml-file.ts';

const CANARY = 'canary-7c1d';
const schema = z.strictObject({ url: plainUrl });
const refuse = (problems: ServiceError['problems']): ServiceError =>
  new ServiceError('invalid_setting', 'it cannot be used', { problems });

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), 'service-local-yaml-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

test.each([
  [
    'a line that is not YAML',
    `url: "${CANARY}\n`,
    /^is not valid YAML at line \d+, column \d+: [A-Z_]+$/,
  ],
  ['an alias without an anchor', `url: *${CANARY}\n`, /^is not valid YAML/],
  ['an unknown tag', `url: !${CANARY} ${CANARY}\n`, /^url: /],
  ['a password in an address', `url: https://a:${CANARY}@b\n`, /^url: must have no user/],
  [
    'an unknown field',
    `url: https://a.b\npassword: ${CANARY}\n`,
    /unknown field "password"; no keys$/,
  ],
])('reports %s without the text of the line', (_what, text, message) => {
  const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => {});
  const file = join(directory, 'file.yaml');
  writeFileSync(file, text);
  let thrown: unknown;
  try {
    readYamlFile(file, { schema, refuse, secretsHint: 'no keys' });
  } catch (error) {
    thrown = error;
  }
  const { problems } = thrown as ServiceError;
  expect(problems?.[0]?.message).toMatch(message);
  expect(JSON.stringify(problems)).not.toContain(CANARY);
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});
