/**
 * The fields of a validation report that records or people fill, by origin: `A` is read from the records,
 * `M` is drafted from the records for a person to edit, and only a person can fill `H`.
 */
export type Origin = 'A' | 'M' | 'H';

type Fields = Readonly<Record<string, Origin>>;

export const SECTION_FIELDS = {
  summary: {
    statement_of_compliance: 'H',
    overall_opinion: 'H',
    method: 'M',
    prior_year_actions: 'M',
  },
  inventory: {
    facts: 'A',
    type: 'M',
    approved_on: 'H',
    approval_scope: 'H',
    restrictions: 'H',
    owner: 'M',
    approved_operators: 'M',
    uses_ai: 'M',
    third_party: 'M',
    doc_link: 'H',
  },
  governance: {
    accountability_map: 'H',
    administrators: 'A',
    designated_approvers: 'H',
    separation_evidence: 'M',
    staff_skills_training: 'H',
    holders_of_halt: 'A',
    compliance_kill_access_2_2: 'H',
    outsourcing_4: 'H',
  },
  testing: {
    methodology_ref: 'H',
    env_separation_7: 'A',
    conformance: 'A',
    venue_report_ref: 'H',
    stress: 'A',
    bcp_test_14_4: 'M',
    pen_test_18_4: 'H',
    vuln_scan_18_4: 'H',
  },
  kill: {
    policy_ref: 'H',
    live_activations: 'A',
    drills: 'A',
    attribution_coverage: 'A',
  },
  pretrade: {
    messages: 'A',
    breaches: 'A',
    overrides_15_6: 'A',
    throttle_disables_15_3: 'A',
    limit_changes: 'A',
  },
  monitoring: {
    alerts: 'A',
    coverage_gaps: 'A',
    unactioned: 'H',
    contact_test_16_4: 'H',
  },
  posttrade: {
    breaks: 'A',
    real_time_pct: 'H',
    position_limits_17_4: 'A',
  },
  surveillance: {
    alerts: 'H',
    timely_pct: 'H',
    false_pos_rate: 'H',
    annual_review_13_6: 'H',
  },
} as const satisfies Readonly<Record<string, Fields>>;

export type SectionName = keyof typeof SECTION_FIELDS;

/** Fields of each item of a list. Items also have an `id`. */
export const ITEM_FIELDS = {
  risk_controls: { facts: 'A', owner: 'H', rationale: 'H', alerts_to: 'H' },
  changes: { facts: 'A', approved_by: 'H', material: 'M', review_11_ref: 'H', notified: 'H' },
  incidents: { facts: 'A', impact: 'H', root_cause: 'M', remedy: 'H', closed: 'H' },
} as const satisfies Readonly<Record<string, Fields>>;

/** Assessments of a paragraph by a person. */
export const ASSESSMENTS = ['compliant', 'partly', 'non_compliant', 'n_a', 'not_assessed'] as const;

/** Roles that Article 9 names; each needs the attestation of a different person. */
export const ATTESTING_ROLES = [
  'risk_management_9_2',
  'technical_staff_involved_9_2',
  'internal_audit_9_3',
  'senior_management_9_3',
] as const;

export type AttestingRole = (typeof ATTESTING_ROLES)[number];

export const ATTESTING_ROLE_NAMES: Readonly<Record<AttestingRole, string>> = {
  risk_management_9_2: 'Risk management, Article 9(2)',
  technical_staff_involved_9_2: 'Technical staff, Article 9(2)',
  internal_audit_9_3: 'Internal audit, Article 9(3)',
  senior_management_9_3: 'Senior management, Article 9(3)',
};

/** JSON pointer, in a request, to the value of a field with this path. */
export function toAnswerPointer(place: string): string {
  return `/human/${place.replaceAll('~', '~0').replaceAll('/', '~1')}`;
}
