import { ERROR_TABLE, ServiceError, type ErrorCode } from '../../src/base/errors.ts';
import { LEASE_REASONS } from '../../src/lease/reasons.ts';
import { blocks, code, prose, table } from './markdown.ts';
import type { Page } from './page.ts';

/** Exit codes that every verb shares; the three exceptions are in the text below the table. */
const EXIT_CODES: readonly (readonly [exit: number, meaning: string])[] = [
  [0, 'success'],
  [1, 'failure'],
  [2, 'wrong usage: command, option or setting'],
  [3, 'invalid bot file, data or request'],
  [4, 'not authenticated, not allowed or not licensed'],
  [5, 'a gate is not met'],
  [6, 'conflict with another change, or drift from a lock'],
  [7, 'a halt is not verified'],
  [8, 'inconclusive: the host was too slow or too busy'],
  [130, 'interrupted'],
];

/** Every error code, exit code and reason of a refused lease. */
export function errorsPage(): Page {
  const rows = Object.entries(ERROR_TABLE).map(([name, { meaning }]) => {
    const error = new ServiceError(name as ErrorCode, '');
    const status = 'status' in ERROR_TABLE[error.code] ? String(error.status) : '';
    return [
      code(name),
      String(error.exitCode),
      status,
      error.retryable ? 'yes' : '',
      prose(meaning),
    ];
  });
  const text = blocks(
    '# Errors',
    'A failure has one stable code. It is `code` in an HTTP response, `error.code` in the output of `--json`, and part of logs and metrics. Codes without an HTTP status occur only at the command line. Where a code has several causes, `reason` tells them apart.',
    '## Exit codes',
    table(
      ['exit code', 'meaning'],
      EXIT_CODES.map(([exit, meaning]) => [String(exit), meaning]),
    ),
    'Three commands use codes of their own. `license needs-renewal` exits with 0 if a renewal is due, 1 if none is due, and 2 without a lease. `daemon status` exits with 0 if the daemon runs, else with 3. `doctor` exits with 0 if all is well, 1 after warnings, and 2 after failures.',
    '## Error codes',
    table(['code', 'exit code', 'HTTP status', 'retry', 'meaning'], rows),
    '## Reasons for refusing a lease',
    'These are the values of `reason` for `license_invalid`, and for files that `license status`, `doctor` and verifiers in other languages refuse.',
    table(
      ['reason', 'meaning'],
      Object.entries(LEASE_REASONS).map(([reason, meaning]) => [code(reason), prose(meaning)]),
    ),
  );
  return { path: 'errors.md', text };
}
