import { ServiceError, type Problem } from '../../base/errors.ts';
import { ASSESSMENTS, toAnswerPointer } from '../../base/validation-report-fields.ts';
import { article, ARTICLES, cite } from '../articles.ts';
import type { Answers } from './answers.ts';
import { fieldsIn } from './report-fields.ts';
import type { Freezing, Human, Report } from './validation-report.ts';

type Assessment = Report['articles'][number]['status'];

/**
 * Fills a draft with the values of the previous version and then with the saved answers, except for
 * fields that no longer exist.
 */
export function fillKept(derived: Report, former: Report | undefined, answers: Answers): Report {
  const report = structuredClone(derived);
  const fields = new Map(fieldsOfPeople(report));
  const earlier = fieldsOfPeople(former).filter(([, { value }]) => value !== null);
  for (const [place, { value, by, at }] of [...earlier, ...Object.entries(answers.human)]) {
    setField(fields.get(place) ?? {}, value, { by, at });
  }
  const deficiencies = answers.deficiencies?.items ?? former?.deficiencies ?? [];
  return withStatuses({ ...report, deficiencies });
}

/**
 * Enters the values of a request.
 *
 * @throws ServiceError `invalid_request` with a pointer for each value that cannot be entered.
 */
export function enterAnswers(
  before: Report,
  { human = {}, deficiencies }: Pick<Freezing, 'human' | 'deficiencies'>,
  author: Pick<Human, 'by' | 'at'>,
): Report {
  const report = structuredClone(before);
  const fields = new Map(fieldsOfPeople(report));
  const problems: Problem[] = [];
  const reject = (pointer: string, message: string) =>
    problems.push({ code: 'invalid_value', message, pointer });
  for (const [place, value] of Object.entries(human)) {
    const field = fields.get(place);
    const fault = field === undefined ? 'is not a field that people can fill' : check(place, value);
    if (fault !== undefined) reject(toAnswerPointer(place), fault);
    else setField(field!, value, author);
  }
  for (const [i, { article: ref }] of (deficiencies ?? []).entries()) {
    if (ARTICLES.some((one) => cite(one) === ref)) continue;
    const example = cite(article('15(3)'));
    reject(`/deficiencies/${i}/article`, `is not a known paragraph; cite one such as ${example}`);
  }
  if (problems.length > 0) {
    throw new ServiceError('invalid_request', 'some values cannot be entered into the report', {
      problems,
      remedy:
        'Correct these values. Fields with the marker H or M in `bots validation-report BOT --json` can be filled.',
    });
  }
  const listed = deficiencies?.map((one, i) => ({ id: `D${i + 1}`, ...one }));
  return withStatuses({ ...report, deficiencies: listed ?? report.deficiencies });
}

function setField(field: object, value: string | null, { by, at }: Pick<Human, 'by' | 'at'>): void {
  Object.assign(field, value === null ? { value, by: null, at: null } : { value, by, at });
}

/** Takes the status of each paragraph from the assessment of a person. */
function withStatuses(report: Report): Report {
  const articles = report.articles.map((row) => ({
    ...row,
    status: (row.final.value as Assessment | null) ?? 'not_assessed',
  }));
  return { ...report, articles };
}

function fieldsOfPeople(report: Report | undefined) {
  return fieldsIn(report).flatMap(([place, field]) =>
    field.marker === 'A' ? [] : [[place, field] as const],
  );
}

/** Returns what is wrong with a value. */
function check(place: string, value: string | null): string | undefined {
  if (value === null) return undefined;
  if (/^\/articles\/[^/]+\/final$/.test(place)) {
    const isKnown = (ASSESSMENTS as readonly string[]).includes(value);
    return isKnown ? undefined : `must be one of ${ASSESSMENTS.join(', ')}`;
  }
  if (/^\/generated_by\/gaps\/.+\/due$/.test(place)) {
    return isDate(value) ? undefined : 'must be a date such as 2026-12-31';
  }
  return undefined;
}

function isDate(value: string): boolean {
  const time = /^\d{4}-\d{2}-\d{2}$/.test(value) ? Date.parse(value) : Number.NaN;
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(value);
}
