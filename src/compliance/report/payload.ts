/**
 * The JSON of a validation report. Times are RFC 3339 in UTC. Each field has a marker: `A` was read from
 * the records, `M` was drafted from the records for a person to edit, and only a person can fill `H`.
 */

/** A value read from the records; running its query again gives a value with the same hash. */
export interface Figure {
  readonly marker: 'A';
  /** Null if the records do not contain the value; the gaps state why. */
  readonly value: unknown;
  /** Name of a query in `queries`, and its parameters. */
  readonly query: { readonly name: string; readonly params: Readonly<Record<string, unknown>> };
  /** SHA-256, in hex, of the value in canonical JSON (RFC 8785). */
  readonly hash: string;
}

/** A value that a person entered, with the name of the person and the time. */
interface Filled {
  readonly value: string | null;
  readonly by: string | null;
  readonly at: string | null;
}

export interface Draft extends Filled {
  readonly marker: 'M';
  /** Suggestion from the records, which has no effect until a person enters a value. */
  readonly draft: string | null;
}

export interface Human extends Filled {
  readonly marker: 'H';
}

/** A fact that is missing or incomplete in the records. */
export interface Gap {
  readonly id: string;
  readonly missing: string;
  /** Citations of the affected paragraphs, see `cite`. */
  readonly articles: readonly string[];
}

export interface Criterion {
  /** Letter within its list of Annex I. */
  readonly id: string;
  readonly ref: string;
  readonly requirement: string;
  readonly fact: Figure | null;
  readonly draft: Draft | null;
  readonly assessment: Human;
}

export interface ReportedLimit {
  /** Name in the spec; `threshold_…` or `overrides` for what people set outside the spec. */
  readonly id: string;
  readonly articles: readonly string[];
  readonly facts: Figure;
  readonly owner: Human;
  readonly rationale: Human;
  readonly alerts_to: Human;
}

export interface VersionChange {
  /** Such as `v3`. */
  readonly id: string;
  /** Time, author and differences from the previous version. */
  readonly facts: Figure;
  readonly approved_by: Human;
  readonly material: Draft;
  readonly review_11_ref: Human;
  readonly notified: Human;
}

export interface Incident {
  /** Id of the task. */
  readonly id: string;
  readonly facts: Figure;
  readonly impact: Human;
  readonly root_cause: Draft;
  readonly remedy: Human;
  readonly closed: Human;
}

export const ASSESSMENTS = ['compliant', 'partly', 'non_compliant', 'n_a', 'not_assessed'] as const;
export type Assessment = (typeof ASSESSMENTS)[number];

export interface ArticleRow {
  /** Citation of the paragraph. */
  readonly id: string;
  readonly requirement: string;
  /** Value of `final`; `not_assessed` until a person fills it. */
  readonly status: Assessment;
  /** Always `not_assessed`, because records alone allow no opinion. */
  readonly auto_suggested: 'not_assessed';
  /** Filled with one of `ASSESSMENTS`. */
  readonly final: Human;
  /** JSON pointers to the parts of this report that concern the paragraph. */
  readonly evidence: readonly string[];
  /** Ids of the gaps that concern the paragraph. */
  readonly gaps: readonly string[];
  readonly narrative: Human;
}

/** A deficiency that a person has entered; the program finds none. */
export interface Deficiency {
  /** `D1`, `D2` and so on. */
  readonly id: string;
  readonly article: string;
  readonly finding: string;
  readonly severity: string;
  readonly owner: string;
  /** Date, `YYYY-MM-DD`. */
  readonly due: string;
  readonly closed: string | null;
  readonly compliance_informed_on: string | null;
}

export const ROLES = [
  'risk_management_9_2',
  'technical_staff_involved_9_2',
  'internal_audit_9_3',
  'senior_management_9_3',
] as const;
export type Role = (typeof ROLES)[number];

export interface Attestation {
  readonly administrator_id: string;
  readonly name: string;
  readonly at: string;
  /** Content hash of the report that the person read. */
  readonly content_hash: string;
}

export interface Report {
  readonly schema: 'rts6-validation/1';
  /** `signed` once all roles that Article 9 names have attested. */
  readonly status: 'draft' | 'frozen' | 'signed';
  /** Items that a signed report leaves open, see `listOpenItems`; absent unless signed. */
  readonly signed_with_open?: readonly string[];
  readonly notice: string;
  /** Null for a draft. */
  readonly number: {
    /** Counts from 1 for each bot. */
    readonly version: number;
    /** The previous version of the same year, which stays unchanged. */
    readonly supersedes: { readonly version: number; readonly hash: string } | null;
    readonly frozen_at: string;
    readonly frozen_by: string;
  } | null;
  /** SHA-256, in hex, of the attested content: the report without status, number and attestations. */
  readonly content_hash: string;
  readonly period: {
    readonly year: number;
    readonly from: string;
    /** Exclusive. */
    readonly to: string;
  };
  readonly as_of: string;
  readonly scope: {
    readonly bot_ref: string;
    readonly bot_id: string;
    readonly name: string;
    readonly firm: Human;
    readonly fleet: Figure;
  };
  readonly generated_by: {
    readonly version: string;
    readonly engine: string;
    /** The newest event that the report includes. */
    readonly log: Figure;
    /** SHA-256, in hex, of the list of the hashes of all figures, in canonical JSON. */
    readonly inputs_hash: string;
    readonly gaps: readonly Gap[];
  };
  /** Descriptions of the queries, by name. */
  readonly queries: Readonly<Record<string, string>>;
  /** Internal thresholds, which RTS 6 does not prescribe. */
  readonly house_numbers: Readonly<Record<string, string>>;
  readonly summary: {
    readonly statement_of_compliance: Human;
    readonly overall_opinion: Human;
    readonly method: Draft;
    readonly prior_year_actions: Draft;
  };
  readonly annex_i: {
    readonly nature: readonly Criterion[];
    readonly scale: readonly Criterion[];
    readonly complexity: readonly Criterion[];
  };
  readonly inventory: {
    readonly facts: Figure;
    readonly type: Draft;
    readonly approved_on: Human;
    readonly approval_scope: Human;
    readonly restrictions: Human;
    readonly owner: Draft;
    readonly approved_operators: Draft;
    readonly uses_ai: Draft;
    readonly third_party: Draft;
    readonly doc_link: Human;
  };
  readonly risk_controls: readonly ReportedLimit[];
  readonly governance: {
    readonly accountability_map: Human;
    readonly administrators: Figure;
    readonly designated_approvers: Human;
    readonly separation_evidence: Draft;
    readonly staff_skills_training: Human;
    readonly holders_of_halt: Figure;
    readonly compliance_kill_access_2_2: Human;
    readonly outsourcing_4: Human;
  };
  readonly testing: {
    readonly methodology_ref: Human;
    readonly env_separation_7: Figure;
    readonly conformance: Figure;
    readonly venue_report_ref: Human;
    readonly stress: Figure;
    readonly bcp_test_14_4: Draft;
    readonly pen_test_18_4: Human;
    readonly vuln_scan_18_4: Human;
  };
  readonly changes: readonly VersionChange[];
  readonly kill: {
    readonly policy_ref: Human;
    readonly live_activations: Figure;
    readonly drills: Figure;
    readonly attribution_coverage: Figure;
  };
  readonly pretrade: {
    readonly messages: Figure;
    readonly breaches: Figure;
    readonly overrides_15_6: Figure;
    readonly throttle_disables_15_3: Figure;
    readonly limit_changes: Figure;
  };
  readonly monitoring: {
    readonly alerts: Figure;
    readonly coverage_gaps: Figure;
    readonly unactioned: Human;
    readonly contact_test_16_4: Human;
  };
  readonly posttrade: {
    readonly breaks: Figure;
    readonly real_time_pct: Human;
    readonly position_limits_17_4: Figure;
  };
  readonly surveillance: {
    readonly alerts: Human;
    readonly timely_pct: Human;
    readonly false_pos_rate: Human;
    readonly annual_review_13_6: Human;
  };
  readonly incidents: readonly Incident[];
  readonly articles: readonly ArticleRow[];
  readonly deficiencies: readonly Deficiency[];
  readonly attestations: Readonly<Record<Role, Attestation | null>> & {
    readonly internal_audit_absent_reason: Human;
  };
}
