import type { ValidationReport } from '../api/validation-reports.ts';
import { formatCountOf } from '../base/format.ts';
import { listOpenItems, describeReportStatus } from '../base/validation-report-status.ts';
import type { Output } from './output.ts';
import { parseCount } from './parse-count.ts';

export const YEAR_OPTION = {
  value: 'year',
  description: 'calendar year; by default the current one',
  parse: parseCount,
} as const;

export const REPORT_PATH = '/bots/{bot_ref}/risk/validation-report';

export function showReport(out: Output, report: ValidationReport): void {
  const { scope, period, status, number, hash, content_hash, articles, attestations } = report;
  const { internal_audit_absent_reason: _reason, ...roles } = attestations;
  const open = articles.filter((one) => one.status === 'not_assessed').length;
  out.table(
    [{ title: '' }, { title: '' }],
    [
      ['bot', `${scope.bot_ref} (${scope.name})`],
      ['period', `from ${period.from}, before ${period.to}`],
      ['status', describeReportStatus(status, listOpenItems(report))],
      ['version', number === null ? 'none: a draft' : String(number.version)],
      ['hash', hash ?? 'none: a draft'],
      ['content hash', content_hash],
      ['paragraphs not assessed', `${open} of ${articles.length}`],
      ...Object.entries(roles).map(([role, one]) => [
        role,
        one === null ? 'not attested' : `${one.name}, ${one.at}`,
      ]),
    ],
  );
  const { gaps } = report.generated_by;
  out.line();
  out.line(`${formatCountOf(gaps.length, 'gap')}:`);
  out.table(
    [{ title: 'missing' }, { title: 'paragraphs' }],
    gaps.map((gap) => [gap.missing, gap.articles.join(', ')]),
  );
  out.line();
  out.line('This report does not state compliance: only a person can assess a paragraph.');
}
