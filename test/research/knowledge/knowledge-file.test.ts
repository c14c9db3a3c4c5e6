import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ServiceError } from '../../../src/base/errors.ts';
import { readKnowledgeFile } from '../../../src/research/knowledge/knowledge-file.ts';
import { SCRATCH } from '../../scratch.ts';

let directory: string;
let file: string;

beforeEach(() => {
  directory = mkdtempSync(join(SCRATCH, 'knowledge-file-'));
  file = join(directory, 'knowledge.yaml');
});

afterEach(() => rmSync(directory, { recursive: true }));

test('the file lists instances with their origins and token variables', () => {
  expect(readKnowledgeFile(file)).toEqual({ timeout_seconds: 3, instances: [] });
  const tokyo = { name: 'tokyo', url: 'https://tokyo.example', token_env: 'TOKYO_TOKEN' };
  writeFileSync(file, JSON.stringify({ timeout_seconds: 1.5, instances: [tokyo] }));
  expect(readKnowledgeFile(file)).toEqual({ timeout_seconds: 1.5, instances: [tokyo] });
});

test('the error lists all problems and contains no token', () => {
  writeFileSync(
    file,
    `timeout_seconds: 60
instances:
  - {name: Tokyo, url: 'https://tokyo.example/api', token_env: slt_abc-def}
  - {name: osaka, url: 'https://user:slt_abc@osaka.example', token: slt_abc-def, token_env: A}
`,
  );
  let thrown: ServiceError | undefined;
  try {
    readKnowledgeFile(file);
  } catch (error) {
    thrown = error as ServiceError;
  }
  expect(thrown).toMatchObject({ code: 'invalid_setting' });
  expect(thrown!.problems.map(({ message }) => message)).toEqual([
    'timeout_seconds: expected number to be <=20',
    'instances.0.name: must be a name of lowercase letters, digits, _ and -',
    'instances.0.url: must be an origin such as https://knowledge.example',
    'instances.0.token_env: must be the name of an environment variable',
    'instances.1.url: must have no user, password, query or fragment',
    'instances.1: unknown field "token"; put the token into an environment variable, and the name of the variable here',
  ]);
  expect(JSON.stringify([thrown, thrown!.message])).not.toMatch('slt_');
});
