/** The pages of the form, on which the fields of a validation report are grouped by article. */

export interface AssessmentSection {
  /** Last part of its path. */
  readonly id: string;
  readonly title: string;
  /** Numbers of its articles. */
  readonly articles: readonly string[];
  /** Beginnings of the paths of its other fields. */
  readonly places: readonly string[];
}

export const SECTIONS: readonly AssessmentSection[] = [
  {
    id: 'organization',
    title: 'Articles 1 to 4: organization',
    articles: ['1', '2', '3', '4'],
    places: ['/governance/'],
  },
  {
    id: 'development',
    title: 'Articles 5 and 11: development and changes',
    articles: ['5', '11'],
    places: ['/testing/methodology_ref', '/changes/'],
  },
  {
    id: 'conformance',
    title: 'Articles 6 and 7: conformance tests',
    articles: ['6', '7'],
    places: ['/testing/conformance', '/testing/env_separation_7', '/testing/venue_report_ref'],
  },
  {
    id: 'deployment',
    title: 'Article 8: deployment',
    articles: ['8'],
    places: ['/inventory/'],
  },
  {
    id: 'self-assessment',
    title: 'Article 9: self-assessment',
    articles: ['9'],
    places: ['/summary/', '/scope/', '/attestations/'],
  },
  {
    id: 'stress',
    title: 'Article 10: stress tests',
    articles: ['10'],
    places: ['/testing/stress'],
  },
  {
    id: 'kill-function',
    title: 'Article 12: kill function',
    articles: ['12'],
    places: ['/kill/'],
  },
  {
    id: 'surveillance',
    title: 'Article 13: surveillance',
    articles: ['13'],
    places: ['/surveillance/'],
  },
  {
    id: 'continuity',
    title: 'Article 14: business continuity',
    articles: ['14'],
    places: ['/testing/bcp_test_14_4'],
  },
  {
    id: 'pre-trade',
    title: 'Article 15: pre-trade controls',
    articles: ['15'],
    places: ['/pretrade/', '/risk_controls/'],
  },
  {
    id: 'monitoring',
    title: 'Article 16: monitoring',
    articles: ['16'],
    places: ['/monitoring/', '/incidents/'],
  },
  {
    id: 'post-trade',
    title: 'Article 17: post-trade controls',
    articles: ['17'],
    places: ['/posttrade/'],
  },
  {
    id: 'security',
    title: 'Articles 18 and 28: security and records',
    articles: ['18', '28'],
    places: ['/testing/pen_test_18_4', '/testing/vuln_scan_18_4'],
  },
  { id: 'nature', title: 'Annex I: nature', articles: [], places: ['/annex_i/nature/'] },
  { id: 'scale', title: 'Annex I: scale', articles: [], places: ['/annex_i/scale/'] },
  {
    id: 'complexity',
    title: 'Annex I: complexity',
    articles: [],
    places: ['/annex_i/complexity/'],
  },
];

/** Whether the form asks for the field with this path on the page of a section. */
export function isIn({ articles, places }: AssessmentSection, place: string): boolean {
  const [, article] = /^\/articles\/(\d+)/.exec(place) ?? [];
  if (article !== undefined) return articles.includes(article);
  return places.some((begin) => place.startsWith(begin));
}

const LABELS: Readonly<Record<string, string>> = {
  final: 'Assessment',
  assessment: 'Assessment',
  methodology_ref: 'Methodology (reference)',
  policy_ref: 'Policy (reference)',
  venue_report_ref: 'Test report of the venue (reference)',
  review_11_ref: 'Review under Article 11 (reference)',
  bcp_test_14_4: 'Test of business continuity, 14(4)',
  pen_test_18_4: 'Penetration test, 18(4)',
  vuln_scan_18_4: 'Vulnerability scan, 18(4)',
  contact_test_16_4: 'Test of the contact channels, 16(4)',
  annual_review_13_6: 'Yearly review, 13(6)',
  compliance_kill_access_2_2: 'Access of compliance to the kill function, 2(2)',
  outsourcing_4: 'Outsourcing, 4',
  overrides_15_6: 'Overrides, 15(6)',
  throttle_disables_15_3: 'Stops after repeated execution, 15(3)',
  position_limits_17_4: 'Position limits, 17(4)',
  env_separation_7: 'Separation of environments, 7',
  false_pos_rate: 'Rate of false alerts',
  timely_pct: 'Alerts in time, %',
  real_time_pct: 'Reconciled in real time, %',
  doc_link: 'Link to the documentation',
  uses_ai: 'Use of artificial intelligence',
  internal_audit_absent_reason: 'Reason if there is no internal audit',
};

/** Names the last part of a path as the label of its field. */
export function labelOf(place: string): string {
  const name = place.slice(place.lastIndexOf('/') + 1);
  const words = LABELS[name] ?? name.replaceAll('_', ' ');
  return words.slice(0, 1).toUpperCase() + words.slice(1);
}
