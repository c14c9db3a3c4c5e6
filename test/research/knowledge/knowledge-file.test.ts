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

test('instances are named with their origins and the variables of their tokens', () => {
  expect(readKnowledgeFile(file)).toEqual({ timeout_seconds: 3, instances: [] });
  const tokyo = { name: 'tokyo', url: 'https://tokyo.example', token_env: 'TOKYO_TOKEN' };
  writeFileSync(file, JSON.stringify({ timeout_seconds: 1.5, instances: [tokyo] }));
  expect(readKnowledgeFile(file)).toEqual({ timeout_seconds: 1.5, instances: [tokyo] });
});

test('what is wrong is told at once, and no token with it', () => {
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
    'instances.0.name: must be a name in lower case',
    'instances.0.url: must be an origin such as https://knowledge.example',
    'instances.0.token_env: must be the name of a variable',
    'instances.1.url: must have no user, password, query or fragment',
    'instances.1: unknown field "token"; the token belongs into the environment, and the name of its variable here',
  ]);
  expect(JSON.stringify([thrown, thrown!.message])).not.toMatch('slt_');
});
