import type { CheckCode } from '../../src/doctor/run-checks.ts';
import { ADMINISTRATOR_CHECKS, CHECKS } from '../../src/doctor/examine.ts';
import { blocks, code, table } from './markdown.ts';
import type { Page } from './page.ts';

const SUBJECTS: Readonly<Record<CheckCode, string>> = {
  runtime: 'version of Node',
  home: 'home directory and its files: owners and permissions',
  disk: 'free disk space',
  watcher: 'notification of changed files',
  catalogue: 'market data in the catalogue',
  lease_file: 'copies of the lease',
  keyset: 'keys that verify leases',
  trust: 'why these keys are trusted, and until when',
  lease_signature: 'signature of the lease',
  lease_use: 'product and machine that the lease is bound to',
  clock: 'clock of the machine',
  lease_state: 'dates of the lease',
  entitlements: 'features that the lease contains',
  device_key: 'private key of the machine',
  server: 'connection to the server and its certificate',
  renewal: 'dry run of the next renewal',
  daemon: 'whether the daemon runs and what it reports',
  schedule: 'time of the next renewal',
  service_unit: 'unit of systemd or launchd',
  versions: 'versions of command and daemon',
  tokens: 'tokens that issue leases without limits (`--server`)',
  database_size: 'size and growth of the database of the server (`--server`)',
  notifications: 'channels and deliveries of notifications (`--server`)',
};

/** Every check of `doctor`. */
export function doctorPage(): Page {
  const text = blocks(
    '# Checks of doctor',
    'The codes are stable, so that scripts and monitoring can use them. A check is skipped if one of the checks that it needs fails. `doctor --json` prints for each check its status, summary, evidence and remedy.',
    table(
      ['check', 'subject', 'needs'],
      [...CHECKS, ...ADMINISTRATOR_CHECKS].map((check) => [
        code(check.code),
        SUBJECTS[check.code],
        (check.needs ?? []).map(code).join(', '),
      ]),
    ),
  );
  return { path: 'doctor.md', text };
}
