/** What of a validation report decides whether something is open in it. */
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

/** What people have left open in a validation report, in words; empty where nothing is. */
export function listOpenItems({ period, generated_by, summary, articles }: Assessed): string[] {
  const not = articles.filter(({ status }) => status === 'not_assessed').length;
  const isCut = generated_by.gaps.some(({ id }) => id === 'period_not_over');
  return [
    ...(not === 0 ? [] : [`${not} of ${articles.length} paragraphs not assessed`]),
    ...(summary.statement_of_compliance.value === null ? ['statement of compliance empty'] : []),
    ...(summary.overall_opinion.value === null ? ['overall opinion empty'] : []),
    ...(isCut ? [`the year ${period.year} not over when it was drafted`] : []),
  ];
}

/** The status, which of a signed report is never said without what is open in it. */
export function describeReportStatus(status: string, open: readonly string[]): string {
  return status === 'signed' && open.length > 0 ? `signed with ${open.join(', ')}` : status;
}
