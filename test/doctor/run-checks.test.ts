import { expect, test } from 'vitest';
import { runChecks, worstStatus, type Check, type Finding } from '../../src/doctor/run-checks.ts';
import { CHECKS } from '../../src/doctor/examine.ts';
import { ServiceError } from '../../src/base/errors.ts';

const finds = (
  code: Check<null>['code'],
  status: Finding['status'],
  depends: Pick<Check<null>, 'needs' | 'blames'> = {},
): Check<null> => ({ code, ...depends, run: () => ({ status, summary: `found ${status}` }) });

const results = async (...checks: Check<null>[]): Promise<string[]> =>
  (await runChecks(checks, null)).map(
    ({ code, status, because }) => `${code} ${status}${because === null ? '' : ` ${because}`}`,
  );

test('a check is not run if one that it needs failed or was skipped', async () => {
  let runs = 0;
  const keyset: Check<null> = {
    code: 'keyset',
    needs: ['lease_file'],
    run: () => ({ status: 'ok', summary: String((runs += 1)) }),
  };
  expect(await results(finds('lease_file', 'fail'), keyset)).toEqual([
    'lease_file fail',
    'keyset skip lease_file',
  ]);
  expect(await results(finds('lease_file', 'skip'), keyset)).toEqual([
    'lease_file skip',
    'keyset skip lease_file',
  ]);
  expect(runs).toBe(0);
  expect(await results(finds('lease_file', 'warn'), keyset)).toEqual([
    'lease_file warn',
    'keyset ok',
  ]);
});

test('a skipped check names the root cause', async () => {
  expect(
    await results(
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

test('only a failed check counts as a cause, and only for checks that find a fault', async () => {
  const blaming = { blames: ['server'] } as const;
  expect(await results(finds('server', 'fail'), finds('schedule', 'ok', blaming))).toEqual([
    'server fail',
    'schedule ok',
  ]);
  for (const status of ['warn', 'skip'] as const) {
    expect(await results(finds('server', status), finds('schedule', 'fail', blaming))).toEqual([
      `server ${status}`,
      'schedule fail',
    ]);
  }
});

test('a check whose fault has another cause keeps its summary, but not its remedy', async () => {
  const finding = { summary: 'it is late', evidence: { hours: 3 }, remedy: 'Hurry.' };
  const [, schedule] = await runChecks(
    [
      finds('server', 'fail'),
      { code: 'schedule', blames: ['server'], run: () => ({ status: 'fail', ...finding }) },
    ],
    null,
  );
  expect(schedule).toEqual({
    code: 'schedule',
    status: 'skip',
    summary: 'it is late; see the check server, which found the cause',
    depends_on: ['server'],
    because: 'server',
    evidence: { hours: 3 },
    remedy: null,
  });
});

test('an expected error becomes a failure with its remedy; any other error is thrown', async () => {
  const throwing = (error: Error): Check<null> => ({
    code: 'home',
    run() {
      throw error;
    },
  });
  const expected = new ServiceError('invalid_data', 'it is a link', {
    reason: 'symlink',
    remedy: 'Put the file itself there.',
  });
  expect(await runChecks([throwing(expected)], null)).toEqual([
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
  await expect(runChecks([throwing(new TypeError('oops'))], null)).rejects.toThrow('oops');
});

test.each([
  ['ok', 'skip', 'ok'],
  ['warn', 'ok', 'warn'],
  ['warn', 'fail', 'fail'],
] as const)('the worst status of %s and %s is %s', async (home, disk, worst) => {
  expect(worstStatus(await runChecks([finds('home', home), finds('disk', disk)], null))).toBe(
    worst,
  );
});

test('each check occurs once, after those it depends on', () => {
  const before = new Set<string>();
  for (const { code, needs = [], blames = [] } of CHECKS as readonly Check<never>[]) {
    expect(before).not.toContain(code);
    for (const other of [...needs, ...blames]) expect(before, code).toContain(other);
    before.add(code);
  }
});
