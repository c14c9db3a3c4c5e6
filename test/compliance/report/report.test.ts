import { createHash, randomUUID } from 'node:crypto';
import assert from 'node:assert/strict';
import canonicalize from 'canonicalize';
import { afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import type { ValidationReport } from '../../../src/api/validation-reports.ts';
import { createBot, updateBot } from '../../../src/fleet/registry/bots.ts';
import { article } from '../../../src/compliance/articles.ts';
import { fieldsIn } from '../../../src/compliance/report/report-fields.ts';
import { buildTestLock } from '../../../src/compliance/tests/result.ts';
import { NO_RISK_LIMITS } from '../../../src/engine/config.ts';
import { appendEvents } from '../../../src/events/append.ts';
import { haltBot } from '../../../src/fleet/halts/halt.ts';
import { hashSecret } from '../../../src/identity/secrets.ts';
import { exampleDocument } from '../../../src/api/bots.ts';
import { newSignedIn } from '../../server/console/visitor.ts';
import { newTestApp, type Answer, type TestApp } from '../../server/in-process.ts';

const PATH = '/bots/sma/risk/validation-report';
const NAME = '<img src=x onerror=alert(1)> & "Co"';

let server: TestApp;
let reader: string;

beforeEach(async () => {
  server = await newTestApp();
  reader = await server.bearer('read');
  const { tasks } = server.services;
  await createBot(tasks, 'operator', { document: documentOf('5000') });
  server.now += 60_000;
  await updateBot(tasks, 'operator', 'sma', () => true, { document: documentOf('9000') });
});

afterEach(() => server.close());

function documentOf(most: string): ReturnType<typeof exampleDocument> {
  const { spec, ...document } = exampleDocument('sma', 10) as {
    readonly spec: object;
    readonly metadata: object;
  } & ReturnType<typeof exampleDocument>;
  const limits = Object.keys(NO_RISK_LIMITS).map((name) => [name, { unlimited: 'a test' }]);
  const risk = { ...Object.fromEntries(limits), max_order_value: most };
  return { ...document, metadata: { name: NAME, slug: 'sma' }, spec: { ...spec, risk } };
}

const get = (query = ''): Promise<Answer> =>
  server.send('GET', `${PATH}${query}`, { headers: { authorization: reader } });

async function draft(query = ''): Promise<ValidationReport> {
  const { status, body } = await get(query);
  assert.equal(status, 200, JSON.stringify(body));
  return body as ValidationReport;
}

interface Person {
  readonly authorization: string;
  readonly stepUp: (content_hash: string) => Promise<string>;
}

async function administrators(): Promise<readonly string[]> {
  const { read } = server.services.identity.storage;
  const rows = await read.selectFrom('administrators').select('administrator_id').execute();
  return rows.map(({ administrator_id }) => administrator_id);
}

/** Creates an administrator with write access and a second factor. */
async function person(): Promise<Person> {
  const { storage } = server.services.identity;
  const before = await administrators();
  const authorization = await server.bearer('read', 'write');
  const administrator_id = (await administrators()).find((one) => !before.includes(one))!;
  return {
    authorization,
    async stepUp(content_hash) {
      const token = randomUUID();
      const row = {
        token_hash: hashSecret(token),
        administrator_id,
        action: 'bots.validation_report.attest',
        target: `validation_report:${content_hash}`,
        expires_at: server.now + 60_000,
        used_at: null,
      };
      await storage.write((tx) => tx.insertInto('step_ups').values(row).execute());
      return token;
    },
  };
}

const post = (
  by: Pick<Person, 'authorization'>,
  body: object,
  headers: object = {},
): Promise<Answer> =>
  server.send('POST', PATH, { headers: { authorization: by.authorization, ...headers }, body });

async function frozen(by: Person, body: object): Promise<ValidationReport> {
  const answer = await post(by, body);
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body as ValidationReport;
}

async function attest(by: Person, { content_hash, number }: ValidationReport, role: string) {
  const body = { attest: role, version: number!.version, content_hash };
  return post(by, body, { 'service-step-up': await by.stepUp(content_hash) });
}

/** Stores a finished conformance test. @param id last four digits of the task id. */
async function conformed(id: string, lock: object, cases: readonly object[]): Promise<void> {
  const { storage } = server.services.identity;
  const { bot_id } = (await draft()).scope;
  const result = { environment: 'simulated_venue', discharges_art6: true, cases, lock };
  await storage.write(async (tx) => {
    const task_id = `0198c0de-0000-7000-8000-00000000${id}`;
    const ids = { task_id, deployment_id: task_id, bot_id, version: 1 };
    const times = { created_at: server.now, ended_at: server.now };
    await tx
      .insertInto('bot_deployments')
      .values({ ...ids, ...times, target: 'test', status: 'success', result_summary: '{}' })
      .execute();
    const progress = { progress_done: 1, progress_total: 1, attempts: 1, started_at: server.now };
    const nothing = { error: null, worker_id: null, heartbeat_at: null };
    await tx
      .insertInto('tasks')
      .values({
        ...ids,
        ...times,
        ...progress,
        ...nothing,
        kind: 'conformance',
        status: 'success',
        input: '{}',
        result: JSON.stringify(result),
        needs_level: 1,
        cancel_requested_at: null,
        created_by: 'operator',
      })
      .execute();
  });
}

function sha256(value: unknown): string {
  return createHash('sha256').update(canonicalize(value)!).digest('hex');
}

const hashOf = ({ hash: _hash, ...report }: ValidationReport): string => sha256(report);

describe('a drafted validation report', () => {
  it('has no assessments or attestations, and lists what is missing', async () => {
    const report = await draft();
    expect(report).toMatchObject({ status: 'draft', hash: null, number: null, deficiencies: [] });
    const { internal_audit_absent_reason: reason, ...attestations } = report.attestations;
    expect(new Set(Object.values(attestations))).toEqual(new Set([null]));
    expect(reason.value).toBeNull();
    expect(new Set(report.articles.map(({ status }) => status))).toEqual(new Set(['not_assessed']));
    const fields = [...fieldsIn(report)].flatMap(([, field]) =>
      field.marker === 'A' ? [] : [field],
    );
    expect(fields.length).toBeGreaterThan(150);
    expect(fields.every(({ value, by, at }) => value === null && by === null && at === null)).toBe(
      true,
    );
    const gaps = report.generated_by.gaps.map(({ id }) => id);
    expect(gaps).toEqual(
      expect.arrayContaining([
        'period_not_over',
        'conformance_not_run',
        'stress_not_run',
        'stress_of_firm',
        'no_thresholds',
        'no_alerts',
        'no_drill',
        'no_production',
        'no_control_15(3)',
        'no_control_15(1)(a)',
        'unlimited_price_collar_bps',
        'approval_v2',
      ]),
    );
    expect(report.monitoring.alerts.value).toBeNull();
  });

  it('has a query and a hash for every figure, and the same figures when drafted again', async () => {
    const report = await draft();
    const figures = [...fieldsIn(report)].flatMap(([place, field]) =>
      field.marker === 'A' ? [[place, field] as const] : [],
    );
    for (const [place, { value, hash, query }] of figures) {
      expect([place, hash]).toEqual([place, sha256(value)]);
      expect(report.queries).toHaveProperty([query.name]);
    }
    expect(report.generated_by.inputs_hash).toBe(sha256(figures.map(([, { hash }]) => hash)));
    expect(await draft()).toEqual(report);
  });

  it('links each paragraph to existing evidence and gaps', async () => {
    const report = await draft();
    for (const { id, evidence, gaps } of report.articles) {
      expect(article(id).ref).toBe(id);
      for (const place of evidence) {
        const found = place.split('/').slice(1).reduce<unknown>(stepInto, report);
        expect([id, place, found]).not.toEqual([id, place, undefined]);
      }
      const known = new Set(report.generated_by.gaps.map((gap) => gap.id));
      expect(gaps.filter((gap) => !known.has(gap))).toEqual([]);
    }
    const cited = report.risk_controls.flatMap(({ articles }) => articles);
    expect(cited.map((one) => article(one).instrument)).toEqual(cited.map(() => 'RTS 6'));
    const collar = report.articles.find(({ id }) => id === '15(1)(a)')!;
    expect(collar.gaps).toContain('unlimited_price_collar_bps');
  });

  it('states who changed which limit and when, and its current value', async () => {
    const report = await draft();
    expect(report.pretrade.limit_changes.value).toMatchObject({
      of_thresholds: { total: 0, items: [] },
      of_versions: {
        total: 1,
        items: [
          {
            when: '2026-01-02T03:05:05.000Z',
            by: 'operator',
            version: 2,
            pointer: '/spec/risk/max_order_value',
            kind: 'changed',
            from: '5000',
            to: '9000',
          },
        ],
      },
    });
    const control = report.risk_controls.find(({ id }) => id === 'max_order_value')!;
    expect(control).toMatchObject({
      articles: ['15(1)(b)', '8(b)'],
      facts: { value: { value: '9000', since_version: 2 } },
      owner: { marker: 'H', value: null },
    });
    expect(report.changes.map(({ id, material }) => [id, material.draft])).toEqual([
      ['v1', expect.stringContaining('first version')],
      ['v2', expect.stringContaining('/spec/risk/max_order_value')],
    ]);
  });

  it('counts denied orders by limit within its year only', async () => {
    const { storage } = server.services.identity;
    const { bot_id } = (await draft()).scope;
    const denied = (reason: string) => ({
      kind: 'order.denied',
      version: 2,
      run_id: 'run',
      occurred_at: 0,
      payload: { seq: 1, kind: 'order.denied', reason },
    });
    const add = (...reasons: string[]) =>
      storage.write((tx) => appendEvents(tx, bot_id, server.now, reasons.map(denied)));
    await add('max_order_value', 'max_order_value', 'max_order_qty');
    const before = (await draft()).pretrade.breaches;
    expect(before.value).toEqual([
      { control: 'max_order_qty', environment: 'unknown', count: 1, blocked: 1, missed: null },
      { control: 'max_order_value', environment: 'unknown', count: 2, blocked: 2, missed: null },
    ]);
    server.now = Date.UTC(2027, 0);
    await add('max_order_value');
    const after = await draft('?year=2026');
    expect(after.pretrade.breaches.value).toEqual(before.value);
    expect((await draft()).pretrade.breaches.value).toMatchObject([{ count: 1 }]);
    expect(await get('?year=2028')).toMatchObject({ status: 400 });
  });

  it('never reports a simulated test as discharging Article 6, or a stale test as current', async () => {
    await conformed('cccc', { spec: 'another' }, [
      { id: 'A01', status: 'pass' },
      { id: 'A02', status: 'inconclusive', reason: 'no fill' },
    ]);
    const { testing, generated_by } = await draft();
    expect(testing.conformance.value).toMatchObject([
      {
        environment: 'simulated_venue',
        discharges_art6: false,
        stale: true,
        not_passed: [{ id: 'A02', status: 'inconclusive', reason: 'no fill' }],
      },
    ]);
    const gaps = generated_by.gaps.map(({ id }) => id);
    expect(gaps).toEqual(expect.arrayContaining(['conformance_stale', 'conformance_at_venue']));
    expect(gaps).not.toContain('conformance_not_run');
  });

  it('lists conformance cases that were not run or whose last run did not pass as gaps', async () => {
    const gapsOf = async (): Promise<readonly string[]> => {
      const { generated_by } = await draft();
      return generated_by.gaps
        .map(({ id, missing }) => `${id} ${missing}`)
        .filter((gap) => gap.startsWith('conformance_') && !gap.includes('at_venue'));
    };
    const lock = buildTestLock(documentOf('9000'), undefined);
    await conformed('ccc1', lock, [{ id: 'C03', status: 'fail', reason: 'not disabled' }]);
    expect(await gapsOf()).toEqual([
      expect.stringMatching(/^conformance_in_part .*39 of 40 cases not run .*: A01, .*C02, C04/),
      'conformance_C03 conformance: C03 failed',
    ]);
    await conformed('ccc2', lock, [
      { id: 'A01', status: 'inconclusive', reason: 'no room' },
      { id: 'A04', status: 'not_applicable', reason: 'no amendments' },
      { id: 'C03', status: 'pass' },
    ]);
    expect(await gapsOf()).toEqual([
      expect.stringContaining('37 of 40 cases not run'),
      'conformance_A01 conformance: A01 was inconclusive, which does not count as passed',
    ]);
  });

  it('is rejected for a year before the bot existed, a future year and a research bot', async () => {
    const created = new Date(server.now).getUTCFullYear();
    expect(await get('?year=1999')).toMatchObject({
      status: 400,
      body: {
        detail: expect.stringMatching(
          `bot sma did not exist in 1999; it was created on ${created}-`,
        ),
      },
    });
    expect(await get(`?year=${created + 1}`)).toMatchObject({
      status: 400,
      body: { detail: `the year ${created + 1} has not begun` },
    });
    const { tasks } = server.services;
    const { spec, ...document } = exampleDocument('analyst', 10) as { readonly spec: object };
    await createBot(tasks, 'operator', {
      document: { ...document, spec: { ...spec, kind: 'research' } },
    });
    const answer = await server.send('GET', '/bots/analyst/risk/validation-report', {
      headers: { authorization: reader },
    });
    expect(answer).toMatchObject({ status: 400, body: { errors: [{ code: 'not_trading' }] } });
  });

  it('lists halts with the orders of the bot that they ended', async () => {
    const { tasks, log } = server.services;
    await haltBot({ ...tasks, log }, 'operator', 'sma', 'it buys too much');
    const { kill } = await draft();
    expect(kill.live_activations.value).toMatchObject({
      total: 1,
      items: [
        {
          scope: 'bot',
          by: 'operator',
          reason: 'it buys too much',
          latched_ms: expect.any(Number) as number,
          ended_ms: null,
          orders: 0,
        },
      ],
    });
  });
});

describe('the page of a validation report', () => {
  it('escapes names, has no script, and sends a policy that allows only its own style', async () => {
    const { status, headers, body } = await get('?format=html');
    expect(status).toBe(200);
    const page = body as string;
    expect(page).not.toContain('<img');
    expect(page).toContain('&#60;img src=x onerror=alert(1)&#62; &#38; &#34;Co&#34;');
    expect(page).not.toMatch(/<script|<link|<[^>]*(javascript:|\son\w+=)/i);
    const style = /<style>([^]*?)<\/style>/.exec(page)![1]!;
    const hash = createHash('sha256').update(style).digest('base64');
    expect(headers.get('content-security-policy')).toBe(
      `default-src 'none'; style-src 'sha256-${hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox`,
    );
    expect(page).toContain('Draft: not frozen, not attested');
    expect(page).toContain('conformance_not_run');
    expect(page.match(/<table/g)!.length).toBe(page.match(/<thead/g)!.length);
  });
});

test('the console pages of a bot link to its draft and frozen validation reports', async () => {
  const { visitor } = await newSignedIn(server);
  const { text } = await visitor.open('/console/bots/sma/rts6');
  const [, link] = /href="([^"]*)"[^>]*>RTS 6 report</.exec(text)!;
  const report = await visitor.open(link!.replaceAll('&amp;', '&'), {
    'sec-fetch-site': 'same-origin',
  });
  expect(report).toMatchObject({ status: 200, text: expect.stringContaining('Draft: not frozen') });

  const versions = async () => (await visitor.open('/console/bots/sma/versions')).text;
  expect(await versions()).not.toContain('Frozen validation reports');
  await frozen(await person(), {});
  const [, kept] = /href="([^"]*version=1[^"]*)"/.exec(await versions())!;
  expect(
    await visitor.open(kept!.replaceAll('&amp;', '&'), { 'sec-fetch-site': 'same-origin' }),
  ).toMatchObject({ status: 200, text: expect.stringContaining('Frozen, not yet attested') });
});

describe('a frozen validation report', () => {
  it('never changes, and later versions name it as superseded', async () => {
    const ada = await person();
    const human = {
      '/testing/methodology_ref': 'Manual, edition 4',
      '/articles/15(3)/final': 'non_compliant',
      '/changes/v2/approved_by': 'The board',
    };
    const deficiency = { article: '15(3)', finding: 'No latch', severity: 'high', owner: 'Risk' };
    const deficiencies = [{ ...deficiency, due: '2026-06-30' }];
    const first = await frozen(ada, { human, deficiencies });
    expect(first).toMatchObject({ status: 'frozen', number: { version: 1, supersedes: null } });
    expect(first.hash).toBe(hashOf(first));
    expect(first.testing.methodology_ref).toMatchObject({ value: 'Manual, edition 4' });
    expect(first.testing.methodology_ref.by).toContain('administrator:');
    expect(first.articles.filter(({ status }) => status !== 'not_assessed')).toMatchObject([
      { id: '15(3)', status: 'non_compliant' },
    ]);

    const { tasks, log } = server.services;
    await haltBot({ ...tasks, log }, 'operator', 'sma', 'later');
    expect(await draft('?version=1')).toEqual(first);

    expect(await post(ada, { human: {} })).toMatchObject({
      status: 409,
      body: { code: 'conflict', reason: 'superseded' },
    });
    const more = { supersedes: 1, human: { '/testing/methodology_ref': null } };
    const second = await frozen(ada, more);
    expect(second.number).toMatchObject({
      version: 2,
      supersedes: { version: 1, hash: first.hash },
    });
    expect(second.testing.methodology_ref.value).toBeNull();
    expect(second.changes[1]!.approved_by).toEqual(first.changes[1]!.approved_by);
    expect(second.deficiencies).toEqual(first.deficiencies);
    expect(second.content_hash).not.toBe(first.content_hash);
    expect(await draft('?version=1')).toEqual(first);
    expect(await get('?version=3')).toMatchObject({ status: 404 });
    expect(await get('?version=1&year=2026')).toMatchObject({ status: 400 });
    const page = (await get('?version=2&format=html')).body as string;
    expect(page).toContain(second.hash!);
    const entries = await server.services.identity.storage.read
      .selectFrom('audit_entries')
      .select(['action', 'details'])
      .where('action', 'like', 'bots.validation_report.%')
      .orderBy('seq')
      .execute();
    expect(entries.map(({ details }) => JSON.parse(details) as unknown)).toMatchObject([
      { version: 1, hash: first.hash },
      { version: 2, hash: second.hash },
    ]);
  });

  it('accepts values only for fields that people may fill, and rejects others with a pointer', async () => {
    const human = {
      '/kill/drills': 'plenty',
      '/__proto__/value': 'x',
      '/articles/15(3)/final': 'fine',
    };
    const deficiencies = [
      { article: '15(99)', finding: 'x', severity: 'x', owner: 'x', due: '2026-06-30' },
    ];
    const { status, body } = await post(await person(), { human, deficiencies });
    expect(status).toBe(400);
    expect(
      (body as { errors: { pointer: string }[] }).errors.map(({ pointer }) => pointer),
    ).toEqual([
      '/human/~1kill~1drills',
      '/human/~1__proto__~1value',
      '/human/~1articles~115(3)~1final',
      '/deficiencies/0/article',
    ]);
    expect(await get('?version=1')).toMatchObject({ status: 404 });
  });

  it('reports every error of a request to freeze', async () => {
    const deficiencies = [{}, { article: '15(3)', closed: 'soon' }];
    const { status, body } = await post(await person(), { human: { '/x': 1 }, deficiencies });
    expect(status).toBe(400);
    const all = (body as { errors: { pointer: string }[] }).errors.map(({ pointer }) => pointer);
    expect(all).toEqual(
      expect.arrayContaining([
        '/human/~1x',
        ...['article', 'finding', 'severity', 'owner', 'due'].map(
          (name) => `/deficiencies/0/${name}`,
        ),
        ...['finding', 'severity', 'owner', 'due', 'closed'].map(
          (name) => `/deficiencies/1/${name}`,
        ),
      ]),
    );
    expect(all.join()).not.toContain('attest');
  });

  it('is signed once a different person has attested in each role of Article 9', async () => {
    const [ada, bob, cyd, dan] = [await person(), await person(), await person(), await person()];
    const first = await frozen(ada, {});
    const without = { attest: 'risk_management_9_2', version: 1, content_hash: first.content_hash };
    expect(await post(ada, without)).toMatchObject({
      status: 401,
      body: { code: 'step_up_required' },
    });
    const other = { ...without, content_hash: '0'.repeat(64) };
    expect(await post(ada, other)).toMatchObject({
      status: 409,
      body: { reason: 'other_content' },
    });

    const answers = [await attest(ada, first, 'risk_management_9_2')];
    const second = answers[0]!.body as ValidationReport;
    expect(second).toMatchObject({ status: 'frozen', number: { supersedes: { version: 1 } } });
    expect(second.content_hash).toBe(first.content_hash);
    expect(second.hash).toBe(hashOf(second));
    expect(await attest(ada, second, 'senior_management_9_3')).toMatchObject({
      status: 409,
      body: { reason: 'same_person' },
    });
    expect(await attest(bob, second, 'risk_management_9_2')).toMatchObject({
      status: 409,
      body: { reason: 'attested' },
    });
    expect(await attest(bob, first, 'senior_management_9_3')).toMatchObject({
      status: 409,
      body: { reason: 'superseded' },
    });
    let last = second;
    for (const [by, role] of [
      [bob, 'technical_staff_involved_9_2'],
      [cyd, 'internal_audit_9_3'],
      [dan, 'senior_management_9_3'],
    ] as const) {
      expect(last.status).toBe('frozen');
      const answer = await attest(by, last, role);
      expect(answer.status).toBe(201);
      last = answer.body as ValidationReport;
    }
    expect(last).toMatchObject({ status: 'signed', number: { version: 5 } });
    expect(last.hash).toBe(hashOf(last));
    expect(last.content_hash).toBe(first.content_hash);
    const open = [
      expect.stringMatching(/^(\d+) of \1 paragraphs not assessed$/),
      'statement of compliance empty',
      'overall opinion empty',
      expect.stringMatching(/^the year \d{4} not over/),
    ];
    expect(last.signed_with_open).toEqual(open);
    const page = String((await get('?version=5&format=html')).body);
    expect(page).toMatch(
      /attested by all roles that Article 9 names, with \d+ of \d+ paragraphs not assessed, .*opinion empty/,
    );
    expect(page).toContain('Senior management, Article 9(3)');
    const anew = await frozen(ada, { supersedes: 5 });
    expect(anew).toMatchObject({ status: 'frozen', attestations: { internal_audit_9_3: null } });
  });
});

function stepInto(value: unknown, name: string): unknown {
  return (value as Readonly<Record<string, unknown>> | undefined)?.[name];
}
