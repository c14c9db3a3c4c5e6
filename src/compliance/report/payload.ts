/**
 * The shape of a validation report. Times are RFC 3339 in UTC. Each of its fields bears a marker: `A` was
 * read from the records, `M` was drafted from them for a person to edit, and `H` only a person can fill.
 */

/** Read from the records: who asks the same again gets a value with the same hash. */
export interface Figure {
  readonly marker: 'A';
  /** Null where the records do not say; why is among the gaps. */
  readonly value: unknown;
  /** What was asked, of those in `queries`, and with which values. */
  readonly query: { readonly name: string; readonly params: Readonly<Record<string, unknown>> };
  /** SHA-256, in hex, of the value in canonical JSON (RFC 8785). */
  readonly hash: string;
}

/** What a person has put there, who, and when. */
interface Filled {
  readonly value: string | null;
  readonly by: string | null;
  readonly at: string | null;
}

export interface Draft extends Filled {
  readonly marker: 'M';
  /** What the records suggest. It counts for nothing until a person has put a value. */
  readonly draft: string | null;
}

export interface Human extends Filled {
  readonly marker: 'H';
}

/** What is missing, or too short, and so is said nowhere in the report. */
export interface Gap {
  readonly id: string;
  readonly missing: string;
  /** Paragraphs that it matters to, as `cite` names them. */
  readonly articles: readonly string[];
}

/** A criterion of Annex I. */
export interface Criterion {
  /** The letter. */
  readonly id: string;
  readonly ref: string;
  readonly requirement: string;
  readonly fact: Figure | null;
  readonly draft: Draft | null;
  readonly assessment: Human;
}

export interface ReportedLimit {
  /** As the spec names it; `threshold_…` and `overrides` are settled by people beside it. */
  readonly id: string;
  readonly articles: readonly string[];
  readonly facts: Figure;
  readonly owner: Human;
  readonly rationale: Human;
  readonly alerts_to: Human;
}

export interface VersionChange {
  /** `v3`. */
  readonly id: string;
  /** When, by whom, and what differs from the version before. */
  readonly facts: Figure;
  readonly approved_by: Human;
  readonly material: Draft;
  readonly review_11_ref: Human;
  readonly notified: Human;
}

export interface Incident {
  /** Of the task. */
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
  /** The paragraph of RTS 6. */
  readonly id: string;
  readonly requirement: string;
  /** What `final` says; `not_assessed` until a person has. */
  readonly status: Assessment;
  /** Never an opinion: what the records alone allow to be said. */
  readonly auto_suggested: 'not_assessed';
  /** One of `ASSESSMENTS`. */
  readonly final: Human;
  /** JSON pointers to what of this report bears on it. */
  readonly evidence: readonly string[];
  /** `id` of those that bear on it. */
  readonly gaps: readonly string[];
  readonly narrative: Human;
}

/** Only a person finds one. */
export interface Deficiency {
  /** `D1` and so on. */
  readonly id: string;
  readonly article: string;
  readonly finding: string;
  readonly severity: string;
  readonly owner: string;
  /** A day. */
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

/** That a person stands for the content of a report. */
export interface Attestation {
  readonly administrator_id: string;
  readonly name: string;
  readonly at: string;
  /** Of the report that was before him. */
  readonly content_hash: string;
}

export interface Report {
  readonly schema: 'rts6-validation/1';
  /** `signed` once all whom Article 9 names have attested. */
  readonly status: 'draft' | 'frozen' | 'signed';
  /** Of a signed one alone: what it leaves open, in words; see `listOpenItems`. */
  readonly signed_with_open?: readonly string[];
  readonly notice: string;
  /** Null of a draft. */
  readonly number: {
    /** From 1 for each bot. */
    readonly version: number;
    /** The one before it, of the same year; that one stays as it is. */
    readonly supersedes: { readonly version: number; readonly hash: string } | null;
    readonly frozen_at: string;
    readonly frozen_by: string;
  } | null;
  /** SHA-256, in hex, of the report but for status, number and attestations: what is attested. */
  readonly content_hash: string;
  readonly period: {
    readonly year: number;
    readonly from: string;
    /** Not itself included. */
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
    /** The event of the bot up to which this was read. */
    readonly log: Figure;
    /** SHA-256, in hex, of the hashes of all figures in their order, in canonical JSON. */
    readonly inputs_hash: string;
    readonly gaps: readonly Gap[];
  };
  /** What each query reads, by name. */
  readonly queries: Readonly<Record<string, string>>;
  /** Ours, by no rule: RTS 6 has no such number. */
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
