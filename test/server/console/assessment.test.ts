import assert from 'node:assert/strict';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exampleDocument } from '../../../src/api/bots.ts';
import type { FirmReport } from '../../../src/api/validation-drafts.ts';
import type { ValidationReport } from '../../../src/api/validation-reports.ts';
import { fieldsIn } from '../../../src/compliance/report/report-fields.ts';
import { createBot } from '../../../src/fleet/registry/bots.ts';
import { isIn, SECTIONS } from '../../../src/server/console/assessment/sections.ts';
import type { Person } from '../../identity/people.ts';
import { newTestApp, type TestApp } from '../in-process.ts';
import { newSignedIn, type Visitor } from './visitor.ts';

const NARRATIVE = '/articles/15(3)/narrative';
const FINAL = '/articles/15(3)/final';
const OWNER = '/generated_by/gaps/no_drill/owner';
const DUE = '/generated_by/gaps/no_drill/due';

let server: TestApp;
let ada: Visitor;
let bob: Visitor;
let people: { readonly ada: Person; readonly bob: Person };

beforeAll(async () => {
  server = await newTestApp();
  for (const slug of ['sma', 'idle']) {
    await createBot(server.services.tasks, 'operator', { document: exampleDocument(slug, 10) });
  }
  const [one, other] = [await newSignedIn(server), await newSignedIn(server)];
  [ada, bob] = [one.visitor, other.visitor];
  people = { ada: one.person, bob: other.person };
});
afterAll(() => server.close());

const pageOf = (section: string): string => `/console/bots/sma/rts6/${section}?year=2026`;

/** Returns the fields that a browser submits for the form of a page: hidden ones and controls. */
async function formOf(visitor: Visitor, section: string): Promise<Record<string, string>> {
  const { text } = await visitor.open(pageOf(section));
  const [, form] = /<form method="post"[^>]*class="answers">([^]*?)<\/form>/.exec(text)!;
  const hidden = [...form!.matchAll(/<input type="hidden" name="([^"]*)" value="([^"]*)"/g)];
  const areas = [...form!.matchAll(/<textarea[^>]*?name="([^"]*)"[^>]*>\n?([^<]*)<\/textarea/g)];
  const inputs = [
    ...form!.matchAll(/<input type="(?:text|date)"[^>]*?name="([^"]*)"[^>]*value="([^"]*)"/g),
  ];
  const selects = [
    ...form!.matchAll(
      /<select[^>]*?name="([^"]*)"[^]*?(?:value="(\w*)" selected[^]*?)?<\/select>/g,
    ),
  ];
  const all = [...hidden, ...areas, ...inputs, ...selects];
  const entries = all.map(([, name, value = '']) => [name!, value]);
  const { csrf: _csrf, ...fields } = Object.fromEntries(entries) as Record<string, string>;
  return fields;
}

async function read<T = ValidationReport>(path = '/bots/sma/risk/validation-report'): Promise<T> {
  const { status, text } = await ada.open(path, { accept: 'application/json' });
  assert.equal(status, 200, text);
  return JSON.parse(text) as T;
}

const valueOf = (report: ValidationReport, place: string): string | null => {
  const field = new Map(fieldsIn(report)).get(place);
  return (field as { readonly value: string | null } | undefined)?.value ?? null;
};

test('asks for each field that people fill on exactly one page', async () => {
  const report = await read();
  const places = fieldsIn(report).flatMap(([place, field]) =>
    field.marker === 'A' ? [] : [place],
  );
  const isOfGap = (place: string): boolean => place.startsWith('/generated_by/gaps/');
  const pages = (place: string): number =>
    SECTIONS.filter((section) => isIn(section, place)).length + (isOfGap(place) ? 1 : 0);
  expect(places.filter((place) => pages(place) !== 1)).toEqual([]);
  for (const { id } of [...SECTIONS, { id: 'gaps' }, { id: 'deficiencies' }]) {
    expect([id, (await ada.open(pageOf(id))).status]).toEqual([id, 200]);
  }
  expect((await ada.open(pageOf('nothing'))).status).toBe(404);
});

describe('the form of an assessment', () => {
  test('saves only what was changed, and a frozen version contains it', async () => {
    const form = await formOf(ada, 'pre-trade');
    const before = await read();
    const saved = await ada.submit(pageOf('pre-trade'), {
      ...form,
      [FINAL]: 'partly',
      [NARRATIVE]: 'A latch exists.\r\nIt is not tested.',
      action: 'next',
    });
    expect(saved.location).toBe('/console/bots/sma/rts6/monitoring?year=2026');
    const after = await read();
    expect(after.revision).toBe(before.revision! + 1);
    expect(valueOf(after, NARRATIVE)).toBe('A latch exists.\nIt is not tested.');
    const filled = fieldsIn(after).filter(
      ([, field]) => field.marker !== 'A' && field.value !== null,
    );
    expect(filled.map(([place]) => place)).toEqual([FINAL, NARRATIVE]);
    expect((await ada.open('/console/bots/sma/rts6')).text).toMatch(/<dd[^>]*>1 of \d+<\/dd>/);

    const { text } = await ada.open('/console/bots/sma/rts6');
    const [, revision] = /name="revision" value="(\d+)"/.exec(text)!;
    const frozen = await ada.submit('/console/bots/sma/rts6', {
      revision: revision!,
      supersedes: '',
    });
    expect(frozen.location).toBe('/console/bots/sma/rts6?year=2026');
    const version = await read('/bots/sma/risk/validation-report?version=1');
    expect(version.articles.find(({ id }) => id === '15(3)')).toMatchObject({ status: 'partly' });
    expect(version).not.toHaveProperty('revision');
    const again = await ada.submit('/console/bots/sma/rts6', {
      revision: revision!,
      supersedes: '1',
    });
    expect([again.status, again.text]).toEqual([409, expect.stringContaining('have revision 2')]);
  });

  test('accepts the draft of a field as its answer', async () => {
    const place = '/summary/method';
    const { draft } = (await read()).summary.method;
    await ada.submit(pageOf('self-assessment'), {
      ...(await formOf(ada, 'self-assessment')),
      [`accept ${place}`]: draft!,
    });
    expect(valueOf(await read(), place)).toBe(draft);
  });

  test('lets two people save different answers, and keeps what was typed into the same one', async () => {
    const [first, second] = [await formOf(ada, 'pre-trade'), await formOf(bob, 'pre-trade')];
    await ada.submit(pageOf('pre-trade'), { ...first, [NARRATIVE]: 'Of ada' });
    const other = '/articles/15(4)/narrative';
    const different = await bob.submit(pageOf('pre-trade'), { ...second, [other]: 'Of bob' });
    expect(different.status).toBe(303);
    expect(valueOf(await read(), NARRATIVE)).toBe('Of ada');

    const same = await bob.submit(pageOf('pre-trade'), { ...second, [NARRATIVE]: 'Also <bob>' });
    expect(same.status).toBe(409);
    expect(same.text).toContain('>\nAlso &lt;bob&gt;</textarea');
    expect(same.text).toContain('The other answer: Of ada');
    expect(same.text).toMatch(/<a href="#f-articles-15-3-narrative">15\(3\) Narrative<\/a>/);
    expect(valueOf(await read(), NARRATIVE)).toBe('Of ada');
    const [, newest] = /name="revision" value="(\d+)"/.exec(same.text)!;
    const [, mark] = /name="was \/articles\/15\(3\)\/narrative" value="([^"]*)"/.exec(same.text)!;
    await bob.submit(pageOf('pre-trade'), {
      revision: newest!,
      [`was ${NARRATIVE}`]: mark!,
      [NARRATIVE]: 'Also <bob>',
    });
    expect(valueOf(await read(), NARRATIVE)).toBe('Also <bob>');
  });

  test('shows faults at their fields, and saves nothing then', async () => {
    const { revision } = await read();
    const form = await formOf(ada, 'gaps');
    const answer = await ada.submit(pageOf('gaps'), {
      ...form,
      [OWNER]: 'Risk',
      [DUE]: '2027-02-30',
    });
    expect(answer.status).toBe(400);
    expect(answer.text).toMatch(/id="f-generated_by-gaps-no_drill-due"[^>]*aria-invalid="true"/);
    expect(answer.text).toContain('It must be a date such as 2026-12-31.');
    expect(answer.text).toContain('value="Risk"');

    const wrong = await ada.submit(pageOf('deficiencies'), {
      ...(await formOf(ada, 'deficiencies')),
      article: '15(99)',
      finding: 'No latch',
    });
    expect(wrong.status).toBe(400);
    expect(wrong.text).toContain('No latch</textarea');
    for (const name of ['severity', 'owner', 'due']) {
      expect(wrong.text).toMatch(new RegExp(`id="${name}-0"[^>]*aria-invalid="true"`));
    }
    expect((await read()).revision).toBe(revision);
  });

  test('keeps the changes of others when a form with a fault is corrected', async () => {
    const page = pageOf('deficiencies');
    const found = { article: '15(3)', severity: 'high', owner: 'Desk', due: '2027-06-30' };
    const form = await formOf(bob, 'deficiencies');
    await ada.submit(page, { ...form, ...found, finding: 'Of ada' });
    const faulty = await bob.submit(page, { ...form, ...found, finding: 'Of bob', due: '' });
    expect(faulty.status).toBe(400);
    const [, revision] = /name="revision" value="(\d+)"/.exec(faulty.text)!;
    const corrected = { ...found, finding: 'Of bob', revision: revision! };
    const refused = await bob.submit(page, corrected);
    expect([refused.status, refused.text]).toEqual([409, expect.stringContaining('Of ada')]);
    expect((await read()).deficiencies).toMatchObject([{ finding: 'Of ada' }]);
    const [, newest] = /name="revision" value="(\d+)"/.exec(refused.text)!;
    await ada.submit(page, { revision: newest! });
    expect((await read()).deficiencies).toEqual([]);
  });

  test('needs a session, and a token of the form', async () => {
    const form = { ...(await formOf(ada, 'gaps')), [OWNER]: 'Nobody' };
    expect(await ada.submit(pageOf('gaps'), { ...form, csrf: 'other' })).toMatchObject({
      status: 403,
    });
    const headers = { authorization: await server.bearer('read') };
    const body = { human: { [OWNER]: 'Nobody' } };
    const path = '/bots/sma/risk/validation-report';
    expect(await server.send('PATCH', path, { headers, body })).toMatchObject({ status: 403 });
    expect(valueOf(await read(), OWNER)).toBeNull();
  });
});

test('the report over all bots has gaps with owner and due date, deficiencies, and counts', async () => {
  await ada.submit(pageOf('gaps'), {
    ...(await formOf(ada, 'gaps')),
    [OWNER]: 'Risk management',
    [DUE]: '2026-01-01',
  });
  await ada.submit(pageOf('deficiencies'), {
    ...(await formOf(ada, 'deficiencies')),
    article: '15(3)',
    finding: 'No latch',
    severity: 'high',
    owner: 'Desk',
    due: '2027-06-30',
  });
  const firm = await read<FirmReport>('/risk/validation-report?year=2026');
  expect(firm.statuses).toEqual({ not_begun: 1, draft: 0, frozen: 1, signed: 0 });
  expect(firm.bots.items).toMatchObject([
    { bot_slug: 'idle', status: 'not_begun', gaps: null, saved_at: null },
    { bot_slug: 'sma', status: 'frozen', version: 1, edited: true, open_deficiencies: 1 },
  ]);
  expect(firm.bots.items[1]!.gaps).toMatchObject({ overdue: 1, unassigned: firm.gaps.total - 1 });
  expect(firm.gaps.items[0]).toMatchObject({
    id: 'no_drill',
    bot_slug: 'sma',
    owner: 'Risk management',
    due: '2026-01-01',
    overdue: true,
  });
  expect(firm.deficiencies.items).toMatchObject([
    { bot_slug: 'sma', owner: 'Desk', overdue: false },
  ]);
  const paragraph = firm.paragraphs.find(({ id }) => id === '15(3)')!;
  expect(paragraph.assessments).toMatchObject({ partly: 1, not_assessed: 1, compliant: 0 });

  const { text } = await ada.open('/console/rts6');
  for (const shown of ['Risk management', '2026-01-01, overdue', 'No latch', 'not begun']) {
    expect(text).toContain(shown);
  }
  expect((await read<FirmReport>('/risk/validation-report?year=2025')).bots.total).toBe(0);
  const report = (await ada.open('/bots/sma/risk/validation-report?format=html')).text;
  expect(report).toMatch(
    /no halt drill in the period[^]*?<td>Risk management<\/td>\s*<td>2026-01-01<\/td>/,
  );
});

test('a frozen version is attested in each role by another person, with a second factor', async () => {
  const page = pageOf('attest');
  const { content_hash } = await read('/bots/sma/risk/validation-report?version=1');
  expect((await ada.open(page)).text).toContain(`name="content_hash" value="${content_hash}"`);
  const form = { version: '1', content_hash, role: 'risk_management_9_2' };
  const wrong = await ada.submit(page, { ...form, code: '0'.repeat(28) });
  expect(wrong.status).toBe(401);
  expect(wrong.text).toContain('The code is wrong or was used before');
  expect(wrong.text).toContain('value="risk_management_9_2" selected');
  const [first, second] = people.ada.recovery_codes as [string, string];
  const done = await ada.submit(page, { ...form, code: first });
  expect(done.location).toBe('/console/bots/sma/rts6?year=2026');
  const { attestations } = await read('/bots/sma/risk/validation-report?version=2');
  expect(attestations.risk_management_9_2).toMatchObject({
    administrator_id: people.ada.id,
    content_hash,
  });

  expect((await ada.open(page)).text).toContain('Each role needs a different person');
  const audit = { ...form, version: '2', role: 'internal_audit_9_3' };
  const same = await ada.submit(page, { ...audit, code: second });
  expect([same.status, same.text]).toEqual([
    409,
    expect.stringContaining('You have already attested as risk_management_9_2'),
  ]);
  const code = people.bob.recovery_codes[0]!;
  const stale = await bob.submit(page, { ...audit, version: '1', code });
  expect([stale.status, stale.text]).toEqual([
    409,
    expect.stringContaining('The newest version of the validation report is 2'),
  ]);
  // A refused request uses up no code.
  expect((await bob.submit(page, { ...audit, code })).status).toBe(303);
});
