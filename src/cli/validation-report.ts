import { resolve } from 'node:path';
import type { freezeValidationReport, ValidationReport } from '../api/validation-reports.ts';
import { ServiceError } from '../base/errors.ts';
import { formatCountOf } from '../base/format.ts';
import { listOpenItems, describeReportStatus } from '../base/validation-report-status.ts';
import type { RequestOf } from '../client/route.ts';
import type { Output } from './output.ts';
import { parseCount } from './parse-count.ts';
import { readNamedFile } from './read-named-file.ts';
import type { Context } from './verb.ts';

export const YEAR_OPTION = {
  value: 'year',
  description: 'calendar year; by default the current one',
  parse: parseCount,
} as const;

export const FILL_OPTION = {
  value: 'file',
  description: 'JSON file with answers',
  complete: 'file',
} as const;

type Filling = Pick<
  Extract<RequestOf<typeof freezeValidationReport>['body'], { human?: unknown }>,
  'human' | 'deficiencies'
>;

/** Reads a file of answers, whose content the server validates; no answers without a file. */
export async function readFilling(
  { cwd }: Pick<Context, 'cwd'>,
  given: string | undefined,
): Promise<Filling> {
  if (given === undefined) return {};
  const file = resolve(cwd, given);
  const text = await readNamedFile(file);
  try {
    return JSON.parse(text) as Filling;
  } catch (error) {
    throw new ServiceError('invalid_data', `${file} is not JSON: ${(error as Error).message}`, {
      remedy: 'Write it as `service-local help bots validation-report save` describes.',
    });
  }
}

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
      ...(report.revision === undefined ? [] : [['revision', String(report.revision)]]),
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
    [{ title: 'missing' }, { title: 'paragraphs' }, { title: 'owner' }, { title: 'due' }],
    gaps.map(({ missing, articles: cited, owner, due }) => [
      missing,
      cited.join(', '),
      owner?.value ?? 'none',
      due?.value ?? 'no date',
    ]),
  );
  out.line();
  out.line('This report does not state compliance: only a person can assess a paragraph.');
}
