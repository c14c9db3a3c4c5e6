import { generateKeyPairSync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createLog, redact, type Log } from '../../src/base/log.ts';

function logged(json: boolean, use: (log: Log) => void): string[] {
  const lines: string[] = [];
  use(createLog((line) => lines.push(line), json));
  return lines;
}

const request = { method: 'POST', path: '/auth/license/leases', status: 201, ms: 3 };

describe('a line of the log', () => {
  it('is a JSON object in the format for machines', () => {
    const [line] = logged(true, (log) => log.info({ request_id: 'a', ...request }));
    expect(JSON.parse(line!)).toEqual({
      level: 'info',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      request_id: 'a',
      ...request,
    });
  });

  it('is short in the format for people', () => {
    const lines = logged(false, (log) => {
      log.info('listening on http://127.0.0.1:8787');
      log.info({ request_id: 'a', ...request });
      const failure = {
        request_id: 'b',
        ...request,
        code: 'license_revoked',
        reason: 'installation',
      };
      log.info({ ...failure, status: 403 });
      log.warn('no key');
    });
    expect(lines.map((line) => line.replace(/^\d\d:\d\d:\d\d/, 'T'))).toEqual([
      'listening on http://127.0.0.1:8787',
      'T POST /auth/license/leases 201 3 ms',
      'T POST /auth/license/leases 403 3 ms license_revoked installation request_id b',
      'T warn: no key',
    ]);
  });

  it('has the stacks of an error and its causes, without row data from a database error', () => {
    const cause = Object.assign(new Error('duplicate key'), { detail: 'Key (name)=(Ada)' });
    const error = new Error('it failed', { cause });
    for (const json of [true, false]) {
      const [line] = logged(json, (log) => log.error({ err: error, ...request }));
      expect(line).toMatch(/Error: it failed.*log\.test\.ts.*caused by Error: duplicate key/s);
      expect(line).not.toContain('Ada');
    }
  });

  it('names the request of an error before the stack', () => {
    const failure = { request_id: 'b', ...request, status: 500, code: 'failure' };
    const [line] = logged(false, (log) => log.error({ ...failure, err: new Error('it failed') }));
    expect(line!.split('\n').slice(0, 2)).toEqual([
      expect.stringMatching(/error: POST \/auth\/license\/leases 500 3 ms failure request_id b$/),
      'Error: it failed',
    ]);
  });

  it('contains no terminal control characters', () => {
    const path = '/\u001B[31mred\u0007\r\n';
    for (const json of [true, false]) {
      const [line] = logged(json, (log) => log.info({ ...request, path }));
      expect(line).not.toMatch(/[^\P{Cc}\n]/u);
    }
  });
});

describe('a secret', () => {
  const pem = generateKeyPairSync('ed25519')
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .trimEnd();
  it.each([
    ['a private key', pem, '[private key]'],
    ['a private key in JSON', JSON.stringify(pem), '"[private key]"'],
    ['a private key that is cut off', pem.slice(0, 60), '[private key]'],
    ['a header', 'authorization: Bearer a.b-c_d~e+f/g==', 'authorization: Bearer [secret]'],
    ['a proof', 'DeviceProof abc.def.ghi', 'DeviceProof [secret]'],
    ['a token', `/x/slt_${'0'.repeat(32)}_${'a'.repeat(43)}?y`, '/x/[secret]?y'],
    ['a step-up', `sls_${'a-_'.repeat(14)}`, '[secret]'],
    ['a JWT', 'got eyJhbGciOiJFZERTQSJ9.eyJpc3MiOiJ4In0.c2ln.', 'got [signed].'],
    ['a password in a URL', 'postgres://me:a%40b@db/x', 'postgres://[secret]@db/x'],
    ['a password without a user', 'redis://:pw@db', 'redis://[secret]@db'],
  ])('is removed: %s', (_, line, expected) => {
    expect(redact(line)).toBe(expected);
  });

  it('is not mistaken for harmless text that resembles it', () => {
    const line = 'GET /identity/leases 200 http://a.example/@x me@a.example slt_1';
    expect(redact(line)).toBe(line);
  });
});
