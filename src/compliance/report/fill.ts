import { ServiceError, type Problem } from '../../base/errors.ts';
import { ASSESSMENTS } from '../../base/validation-report-fields.ts';
import { article, ARTICLES, cite } from '../articles.ts';
import { fieldsIn } from './report-fields.ts';
import type { Freezing, Human, Report } from './validation-report.ts';

type Assessment = Report['articles'][number]['status'];

/**
 * Fills a draft with the values of the previous version, except for fields that no longer exist, and with
 * the new values.
 *
 * @throws ServiceError `invalid_request` with a pointer for each value that cannot be entered.
 */
export function fillReport(
  derived: Report,
  before: Report | undefined,
  { human = {}, deficiencies }: Freezing,
  { by, at }: Pick<Human, 'by' | 'at'>,
): Report {
  const report = structuredClone(derived);
  const fields = new Map(fieldsOfPeople(report));
  for (const [place, { value, by: who, at: when }] of fieldsOfPeople(before)) {
    if (value !== null) Object.assign(fields.get(place) ?? {}, { value, by: who, at: when });
  }
  const problems: Problem[] = [];
  const reject = (pointer: string, message: string) =>
    problems.push({ code: 'invalid_value', message, pointer });
  for (const [place, value] of Object.entries(human)) {
    const field = fields.get(place);
    const pointer = `/human/${place.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    if (field === undefined) reject(pointer, 'is not a field that people can fill');
    else if (!isAllowed(place, value)) reject(pointer, `must be one of ${ASSESSMENTS.join(', ')}`);
    else Object.assign(field, value === null ? { value, by: null, at: null } : { value, by, at });
  }
  for (const [i, { article: ref }] of (deficiencies ?? []).entries()) {
    if (ARTICLES.some((one) => cite(one) === ref)) continue;
    const example = cite(article('15(3)'));
    reject(`/deficiencies/${i}/article`, `is not a known paragraph; cite one such as ${example}`);
  }
  if (problems.length > 0) {
    throw new ServiceError('invalid_request', 'some values cannot be entered into the report', {
      problems,
      remedy: 'Use the paths of fields that the draft marks with H or M.',
    });
  }
  return {
    ...report,
    articles: report.articles.map((row) => ({
      ...row,
      status: (row.final.value as Assessment | null) ?? 'not_assessed',
    })),
    deficiencies:
      deficiencies?.map((one, i) => ({ id: `D${i + 1}`, ...one })) ?? before?.deficiencies ?? [],
  };
}

function fieldsOfPeople(report: Report | undefined) {
  return fieldsIn(report).flatMap(([place, field]) =>
    field.marker === 'A' ? [] : [[place, field] as const],
  );
}

function isAllowed(place: string, value: string | null): boolean {
  const isAssessment = /^\/articles\/[^/]+\/final$/.test(place);
  return value === null || !isAssessment || (ASSESSMENTS as readonly string[]).includes(value);
}
