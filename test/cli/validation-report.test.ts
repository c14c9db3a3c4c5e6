import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ValidationReport } from '../../src/api/validation-reports.ts';
import { addToken } from '../../src/identity/tokens.ts';
import { newWorld, type Person, type World } from '../identity/people.ts';
import { tradingDocument } from '../fleet/parity/play.ts';
import { serveHere, type ServerHere } from '../server/running.ts';
import { inProcess } from './in-process.ts';
import type { Result } from './service-local.ts';

let world: World;
let server: ServerHere;
let directory: string;
let person: Person;
let token: string;

beforeAll(async () => {
  world = await newWorld('sqlite');
  world.now = Date.now();
  directory = await mkdtemp(join(tmpdir(), 'service-local-report-'));
  person = await world.newPerson();
  const terms = { label: 'test', scopes: ['read', 'write'] as const, expires_in_seconds: 3600 };
  const { storage, clock } = world.identity;
  token = (await storage.write((tx) => addToken(tx, clock(), 'operator', person.id, terms))).token;
  server = await serveHere(world.database, {});
  const file = join(directory, 'sma.json');
  await writeFile(file, JSON.stringify(tradingDocument('sma', 10)));
  assert.equal((await bots('create', '-f', file)).code, 0);
});
afterAll(async () => {
  await server.stop();
  await world.close();
  await rm(directory, { recursive: true });
});

const botsWith =
  (bearer: string) =>
  (...words: readonly string[]): Promise<Result> =>
    inProcess(['bots', ...words], { env: { ...server.env, SERVICE_LOCAL_TOKEN: bearer } });

const bots = (...words: readonly string[]): Promise<Result> => botsWith(token)(...words);

const report = (...words: readonly string[]): Promise<Result> =>
  bots('validation-report', ...words);

test('prints a draft with its gaps, and writes it as JSON or HTML', async () => {
  const shown = await report('sma');
  expect(shown).toMatchObject({ code: 0 });
  expect(shown.stdout).toContain('conformance: not run');
  expect(shown.stdout).toContain('This report does not state compliance');

  const page = join(directory, 'report.html');
  expect(await report('sma', '--format', 'html', '--out', page)).toMatchObject({ code: 0 });
  expect(await readFile(page, 'utf8')).toMatch(/^<!doctype html>[^]*Draft: not frozen/);
  const file = join(directory, 'report.json');
  const { stdout } = await report('sma', '--json', '--out', file);
  expect(JSON.parse(await readFile(file, 'utf8'))).toEqual(JSON.parse(stdout));

  expect(await report('sma', '--format', 'html')).toMatchObject({ code: 2 });
  expect(await report('sma', '--year', '2026', '--version', '1')).toMatchObject({ code: 2 });
  expect(await report('nobody')).toMatchObject({ code: 1 });
});

test('saves answers with owner and due date of a gap, which the report over all bots lists', async () => {
  const fill = join(directory, 'save.json');
  const gap = '/generated_by/gaps/no_drill';
  const human = { [`${gap}/owner`]: 'Risk management', [`${gap}/due`]: '2027-01-31' };
  await writeFile(fill, JSON.stringify({ human }));
  const saved = await report('save', 'sma', '--fill', fill);
  expect(saved).toMatchObject({ code: 0 });
  expect(saved.stdout).toMatch(
    /no halt drill in the period +12, 14\(4\) +Risk management +2027-01-31/,
  );
  await writeFile(fill, JSON.stringify({ human: { [`${gap}/owner`]: 'Desk' } }));
  expect(await report('save', 'sma', '--revision', '0', '--fill', fill)).toMatchObject({ code: 6 });
  const firm = await report('firm');
  expect(firm.stdout).toMatch(/sma +draft /);
  expect(firm.stdout).toMatch(/2027-01-31 +Risk management +sma +no halt drill in the period/);
});

test('freezes a report with answers, and attests it with a second factor per role', async () => {
  const fill = join(directory, 'fill.json');
  await writeFile(fill, JSON.stringify({ human: { '/kill/policy_ref': 'Policy 7' } }));
  const frozen = await report('freeze', 'sma', '--fill', fill, '--json');
  expect(frozen).toMatchObject({ code: 0 });
  expect(JSON.parse(frozen.stdout)).toMatchObject({
    number: { version: 1 },
    kill: { policy_ref: { value: 'Policy 7' } },
  });
  expect(await report('freeze', 'sma')).toMatchObject({ code: 6 });

  const attest = ['attest', 'sma', '--version', '1', '--role', 'risk_management_9_2', '--json'];
  expect(await report(...attest, '--code', '000000')).toMatchObject({ code: 4 });
  const attested = await report(...attest, '--code', person.recovery_codes[0]!);
  expect(attested).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(
      /^You are about to attest a report with \d+ of \d+ paragraphs not assessed, statement of compliance empty, /,
    ),
  });
  const { status, number, attestations } = JSON.parse(attested.stdout) as ValidationReport;
  expect([status, number?.version]).toEqual(['frozen', 2]);
  expect(attestations.risk_management_9_2).toMatchObject({ administrator_id: person.id });
  const list = await report('list', 'sma', '--json');
  expect((JSON.parse(list.stdout) as { versions: unknown[] }).versions).toMatchObject([
    { version: 2, status: 'frozen', attested: ['risk_management_9_2'] },
    { version: 1, status: 'frozen', attested: [] },
  ]);
  expect((await report('list', 'sma')).stdout).toMatch(/^2 .* frozen, attested in 1 of 4 roles /m);
});

test('freezing a report again needs only the scope write, and reports how many attestations are lost', async () => {
  const write = botsWith(await person.token('write'));
  const again = await write('validation-report', 'freeze', 'sma', '--supersedes', '2');
  expect(again).toMatchObject({
    code: 0,
    stderr: 'note: not kept in the new version: 1 attestation of version 2\n',
  });
});
