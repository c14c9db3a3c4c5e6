import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { machineHash } from '../../src/lease/use.ts';
import { claimsOf, issue, testKey } from './issuer.ts';
import { VECTORS, type Vectors } from './make-vectors.ts';
import { judgeAll, type Verifier, VERIFIERS } from './runtimes.ts';

const { vectors } = JSON.parse(readFileSync(VECTORS, 'utf8')) as Vectors;
const [whole] = vectors as [Vectors['vectors'][number]];

const [python, go] = VERIFIERS;

describe.skipIf(python.isMissing)(`examples/verify/${python.title}`, () => {
  testVerifier(python);
});
describe.skipIf(go.isMissing)(`examples/verify/${go.title}`, () => {
  testVerifier(go);
});

function testVerifier(verifier: Verifier): void {
  test('judges every vector as the issuer does', () => {
    const { length } = vectors;
    expect(verifier.run('--vectors', VECTORS)).toEqual({
      code: 0,
      stdout: `${length} of ${length} vectors agree\n`,
      stderr: '',
    });
  });

  test('names a vector with another outcome, and fails', () => {
    const wrong = { ...whole, name: 'odd one', state: 'grace', reason: 'in_grace' } as const;
    expect(judgeAll(verifier, [whole, wrong])).toMatch(/^odd one: .*\n1 of 2 vectors agree\n$/);
  });

  test('bounds the size of a keyset and of a lease by their bytes', () => {
    const { keyset, lease } = whole;
    const small = { ...whole, keyset: keyset.padEnd(65_536), lease: lease!.padEnd(65_536) };
    const large = { ...whole, state: 'refused', reason: 'too_large' } as const;
    const wide = JSON.stringify({ ...(JSON.parse(keyset) as object), note: 'é'.repeat(40_000) });
    const given = [
      small,
      { ...large, keyset: keyset.padEnd(65_537) },
      { ...large, lease: lease!.padEnd(65_537) },
      { ...large, keyset: wide },
    ];
    expect(judgeAll(verifier, given)).toBe('4 of 4 vectors agree\n');
  });

  describe('as a command', () => {
    const directory = mkdtempSync(join(tmpdir(), 'service-local-verify-'));
    const file = (name: string, text: string): string => {
      const path = join(directory, name);
      writeFileSync(path, text);
      return path;
    };
    const keyset = file('keys.json', whole.keyset);
    const lease = file('lease.json', whole.lease!);
    const pin = ['--pin', whole.pin!] as const;

    test.each([
      ['valid', 0, '2026-01-06T00:00:00Z'],
      ['grace in_grace', 0, '2026-01-13T00:00:00Z'],
      ['expired expired', 4, '2026-01-16T00:00:00Z'],
    ])('prints %s and exits with %i', (line, code, now) => {
      const answer = verifier.run(...pin, '--held', keyset, '--now', now, keyset, lease);
      expect(answer).toEqual({ code, stdout: `${line}\n`, stderr: '' });
    });

    test('prints why it refuses, and exits with 3', () => {
      const other = ['--pin', testKey(1).jwk.kid] as const;
      expect(verifier.run(...other, '--now', whole.now, keyset, lease)).toMatchObject({
        code: 3,
        stdout: 'refused other_root\n',
      });
      const copied = verifier.run(...pin, '--now', whole.now, keyset, file('empty.json', ''));
      expect(copied).toMatchObject({ code: 3, stdout: 'refused not_json\n' });
    });

    test.each([
      ['a missing file', ['missing.json', lease], /missing\.json/],
      ['a missing held file', ['--held', 'missing.json', keyset, lease], /missing\.json/],
      ['missing test vectors', ['--vectors', 'missing.json'], /missing\.json/],
      ['no lease', [keyset], /a keyset and a lease/],
      ['a date', ['--now', '2026-12-01', keyset, lease], /2026-12-01.* 2026-01-02T03:04:05Z/],
      ['what is no fingerprint', ['--pin', 'XXX', keyset, lease], /XXX.* 43 characters/],
      ['an empty pin', ['--pin=', keyset, lease], /43 characters/],
    ])('names %s, and exits with 2', (_what, words, message) => {
      const { code, stdout, stderr } = verifier.run(...words);
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
      expect(stderr).toMatch(message);
      expect(stderr).not.toMatch(/Traceback|goroutine/);
    });

    test('refuses the lease of another product, device and machine', () => {
      const key = testKey(1);
      const here = (claims: object, ...options: readonly string[]): string => {
        const bound = file('bound.json', issue(claimsOf(key, claims), key));
        const now = ['--now', whole.now] as const;
        return verifier.run(...pin, ...now, ...options, keyset, bound).stdout;
      };
      const device = { binding: 'device', device_thumbprint: testKey(2).jwk.kid };
      const machine = { binding: 'machine', machine_hash: machineHash('abc') };
      expect(here({ product: 'trader' }, '--product', 'viewer')).toBe('refused other_product\n');
      expect(here(device, `--device=${testKey(3).jwk.kid}`)).toBe('refused other_device\n');
      expect(here(machine, '--machine-id', 'abd')).toBe('refused other_machine\n');
      expect(here(machine, '--machine-id', ' ABC\n')).toBe('valid\n');
    });
  });
}
