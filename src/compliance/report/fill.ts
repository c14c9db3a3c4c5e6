import { ServiceError, type Problem } from '../../base/errors.ts';
import { ASSESSMENTS } from '../../base/validation-report-fields.ts';
import { article, ARTICLES, cite } from '../articles.ts';
import { fieldsIn } from './report-fields.ts';
import type { ArticleRow, Deficiency, Report } from './validation-report.ts';

/** Values that people enter, by the path of the field (see `fieldsIn`); null clears a field. */
export type Filling = Readonly<Record<string, string | null>>;

type Writable = { value: string | null; by: string | null; at: string | null };

/**
 * Fills a draft with the values of the previous version, except for fields that no longer exist, and with
 * the new values.
 *
 * @throws ServiceError `invalid_request` with a pointer for each value that cannot be entered.
 */
export function fillReport(
  derived: Report,
  before: Report | undefined,
  filling: Filling,
  deficiencies: readonly Omit<Deficiency, 'id'>[] | undefined,
  by: string,
  at: string,
): Report {
  const report = structuredClone(derived);
  const fields = new Map(
    [...fieldsIn(report)].flatMap(([place, field]) =>
      field.marker === 'A' ? [] : [[place, field as Writable] as const],
    ),
  );
  for (const [place, field] of before === undefined ? [] : fieldsIn(before)) {
    if (field.marker === 'A' || field.value === null) continue;
    const { value, by: who, at: when } = field;
    Object.assign(fields.get(place) ?? {}, { value, by: who, at: when });
  }
  const problems: Problem[] = [];
  for (const [place, value] of Object.entries(filling)) {
    const field = fields.get(place);
    const message =
      field === undefined ? 'is not a field that people can fill' : findFault(place, value);
    if (message !== undefined) {
      const pointer = `/human/${place.replaceAll('~', '~0').replaceAll('/', '~1')}`;
      problems.push({ code: 'invalid_value', message, pointer });
    } else Object.assign(field!, value === null ? NOTHING : { value, by, at });
  }
  problems.push(...findProblems(deficiencies ?? []));
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
      status: (row.final.value as ArticleRow['status'] | null) ?? 'not_assessed',
    })),
    deficiencies: deficiencies
      ? deficiencies.map((one, i) => ({ id: `D${i + 1}`, ...one }))
      : (before?.deficiencies ?? []),
  };
}

const NOTHING = { value: null, by: null, at: null };

function findFault(place: string, value: string | null): string | undefined {
  if (value === null || !/^\/articles\/[^/]+\/final$/.test(place)) return undefined;
  if ((ASSESSMENTS as readonly string[]).includes(value)) return undefined;
  return `must be one of ${ASSESSMENTS.join(', ')}`;
}

const CITATIONS: ReadonlySet<string> = new Set(ARTICLES.map(cite));

function findProblems(deficiencies: readonly Pick<Deficiency, 'article'>[]): Problem[] {
  return deficiencies.flatMap(({ article: ref }, i) =>
    CITATIONS.has(ref)
      ? []
      : [
          {
            code: 'invalid_value',
            message: `is not a known paragraph; cite one such as ${cite(article('15(3)'))}`,
            pointer: `/deficiencies/${i}/article`,
          },
        ],
  );
}
