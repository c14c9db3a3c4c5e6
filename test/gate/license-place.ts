import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { openLicenseGate, type GateOptions, type LicenseGate } from '../../src/gate/gate.ts';
import type { GateStatus } from '../../src/gate/decide.ts';
import type { LeaseClaims } from '../../src/lease/claims.ts';
import { formatTime } from '../../src/lease/time.ts';
import { licenseFiles, type LicenseFiles } from '../../src/gate/license-files.ts';
import { claimsOf, issue, testKey, type SigningKey } from '../lease/issuer.ts';

export const KEY = testKey(1);
export const NOW = Date.parse('2026-01-05T09:30:00Z');
const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

/** A lease of seven days and three of grace. @param days from `NOW` until it was issued. */
export function leaseOf(
  lease_id: string,
  days = 0,
  change: Partial<LeaseClaims> = {},
  key: SigningKey = KEY,
): string {
  const issued_at = formatTime(NOW + days * DAY);
  return issue(claimsOf(key, { lease_id, issued_at, ...change }), key);
}

export function keysetOf(...keys: readonly SigningKey[]): string {
  return JSON.stringify({ keys: keys.map(({ jwk }) => jwk) });
}

/** A home, and the gates that a test opens on its files. */
export interface LicensePlace {
  readonly home: string;
  readonly files: LicenseFiles;
  readonly put: (path: string, text: string) => void;
  readonly time: { now: number; up: number; boot: string };
  readonly open: (change?: Partial<GateOptions>) => Promise<WatchedGate>;
  readonly remove: () => Promise<void>;
}

export interface WatchedGate extends LicenseGate {
  readonly until: (accept: (status: GateStatus) => boolean) => Promise<GateStatus>;
  /** All that it told, in order. */
  readonly told: readonly GateStatus[];
  readonly warnings: readonly string[];
}

export function newLicensePlace(): LicensePlace {
  const home = join(mkdtempSync(join(tmpdir(), 'service-local-gate-')), 'home');
  mkdirSync(home);
  const files = licenseFiles(home, {});
  const time = { now: NOW, up: 0, boot: 'boot' };
  const gates: LicenseGate[] = [];
  return {
    home,
    files,
    time,
    put(path, text) {
      writeFileSync(`${path}.new`, text);
      renameSync(`${path}.new`, path);
    },
    async open(change = {}) {
      const told: GateStatus[] = [];
      const warnings: string[] = [];
      let look = (): void => {};
      const gate = await openLicenseGate({
        files,
        enforced: true,
        clock: () => time.now,
        boot: () => ({ boot_id: time.boot, uptime_seconds: time.up / 1000 }),
        onChange(status) {
          told.push(status);
          look();
        },
        warn: (text) => warnings.push(text),
        ...change,
      });
      gates.push(gate);
      const until: WatchedGate['until'] = (accept) =>
        new Promise((resolve) => {
          look = () => {
            const found = told.find(accept);
            if (found) resolve(found);
          };
          look();
        });
      return { ...gate, until, told, warnings };
    },
    async remove() {
      for (const gate of gates) await gate.close();
      rmSync(dirname(home), { recursive: true });
    },
  };
}
