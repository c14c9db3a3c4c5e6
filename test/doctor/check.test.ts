import { expect, test } from 'vitest';
import { makeChecks, worstOf, type Check, type Finding } from '../../src/doctor/check.ts';
import { CHECKS } from '../../src/doctor/examine.ts';
import { ServiceError } from '../../src/base/errors.ts';

const finds = (
  code: Check<null>['code'],
  status: Finding['status'],
  depends: Pick<Check<null>, 'needs' | 'blames'> = {},
): Check<null> => ({ code, ...depends, look: () => ({ status, summary: `found ${status}` }) });

const told = async (...checks: Check<null>[]): Promise<string[]> =>
  (await makeChecks(checks, null)).map(
    ({ code, status, because }) => `${code} ${status}${because === null ? '' : ` ${because}`}`,
  );

test('what needs something that failed, or is not there, is not looked at', async () => {
  let looks = 0;
  const keyset: Check<null> = {
    code: 'keyset',
    needs: ['lease_file'],
    look: () => ({ status: 'ok', summary: String((looks += 1)) }),
  };
  expect(await told(finds('lease_file', 'fail'), keyset)).toEqual([
    'lease_file fail',
    'keyset skip lease_file',
  ]);
  expect(await told(finds('lease_file', 'skip'), keyset)).toEqual([
    'lease_file skip',
    'keyset skip lease_file',
  ]);
  expect(looks).toBe(0);
  expect(await told(finds('lease_file', 'warn'), keyset)).toEqual(['lease_file warn', 'keyset ok']);
});

test('the cause that is named is the root', async () => {
  expect(
    await told(
      finds('device_key', 'ok'),
      finds('server', 'fail', { needs: ['device_key'] }),
      finds('renewal', 'ok', { needs: ['server'] }),
      finds('schedule', 'warn', { needs: ['device_key'], blames: ['renewal'] }),
      finds('lease_file', 'fail'),
    ),
  ).toEqual([
    'device_key ok',
    'server fail',
    'renewal skip server',
    'schedule skip server',
    'lease_file fail',
  ]);
});

test('only a failure is to blame, and only for what is wrong', async () => {
  const blaming = { blames: ['server'] } as const;
  expect(await told(finds('server', 'fail'), finds('schedule', 'ok', blaming))).toEqual([
    'server fail',
    'schedule ok',
  ]);
  for (const status of ['warn', 'skip'] as const) {
    expect(await told(finds('server', status), finds('schedule', 'fail', blaming))).toEqual([
      `server ${status}`,
      'schedule fail',
    ]);
  }
});

test('what follows from another failure says what it found, and leaves the remedy to that', async () => {
  const finding = { summary: 'it is late', evidence: { hours: 3 }, remedy: 'Hurry.' };
  const [, schedule] = await makeChecks(
    [
      finds('server', 'fail'),
      { code: 'schedule', blames: ['server'], look: () => ({ status: 'fail', ...finding }) },
    ],
    null,
  );
  expect(schedule).toEqual({
    code: 'schedule',
    status: 'skip',
    summary: 'it is late; the cause is what server found',
    depends_on: ['server'],
    because: 'server',
    evidence: { hours: 3 },
    remedy: null,
  });
});

test('an expected error is a failure, with its remedy; any other is a bug', async () => {
  const throwing = (error: Error): Check<null> => ({
    code: 'home',
    look() {
      throw error;
    },
  });
  const expected = new ServiceError('invalid_data', 'it is a link', {
    reason: 'symlink',
    remedy: 'Put the file itself there.',
  });
  expect(await makeChecks([throwing(expected)], null)).toEqual([
    {
      code: 'home',
      status: 'fail',
      summary: 'it is a link',
      depends_on: [],
      because: null,
      evidence: { code: 'invalid_data', reason: 'symlink' },
      remedy: 'Put the file itself there.',
    },
  ]);
  await expect(makeChecks([throwing(new TypeError('oops'))], null)).rejects.toThrow('oops');
});

test.each([
  ['ok', 'skip', 'ok'],
  ['warn', 'ok', 'warn'],
  ['warn', 'fail', 'fail'],
] as const)('of %s and %s the worst is %s', async (home, disk, worst) => {
  expect(worstOf(await makeChecks([finds('home', home), finds('disk', disk)], null))).toBe(worst);
});

test('each check comes after those it depends on, and is there once', () => {
  const before = new Set<string>();
  for (const { code, needs = [], blames = [] } of CHECKS as readonly Check<never>[]) {
    expect(before).not.toContain(code);
    for (const other of [...needs, ...blames]) expect(before, code).toContain(other);
    before.add(code);
  }
});
