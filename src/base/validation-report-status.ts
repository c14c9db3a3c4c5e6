import { ATTESTING_ROLES } from './validation-report-fields.ts';

/** The part of a validation report that shows what is still open. */
interface Assessed {
  readonly status: string;
  readonly period: { readonly year: number };
  readonly generated_by: { readonly gaps: readonly { readonly id: string }[] };
  readonly summary: {
    readonly statement_of_compliance: { readonly value: string | null };
    readonly overall_opinion: { readonly value: string | null };
  };
  readonly articles: readonly { readonly status: string }[];
}

/** Describes what people have not completed in a validation report; empty if nothing is open. */
export function listOpenItems({ period, generated_by, summary, articles }: Assessed): string[] {
  const notAssessed = articles.filter(({ status }) => status === 'not_assessed').length;
  const isEarly = generated_by.gaps.some(({ id }) => id === 'period_not_over');
  return [
    ...(notAssessed === 0 ? [] : [`${notAssessed} of ${articles.length} paragraphs not assessed`]),
    ...(summary.statement_of_compliance.value === null ? ['statement of compliance empty'] : []),
    ...(summary.overall_opinion.value === null ? ['overall opinion empty'] : []),
    ...(isEarly ? [`the year ${period.year} not over when it was drafted`] : []),
  ];
}

/** Shows the status, of a signed report always with its open items, else with its attestations. */
export function describeReportStatus(
  status: string,
  open: readonly string[],
  attested: readonly string[] = [],
): string {
  if (status === 'frozen' && attested.length > 0) {
    return `frozen, attested in ${attested.length} of ${ATTESTING_ROLES.length} roles`;
  }
  return status === 'signed' && open.length > 0 ? `signed with ${open.join(', ')}` : status;
}
