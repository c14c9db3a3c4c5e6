/** The JSON of a validation report. Times are RFC 3339 in UTC. */
import type {
  ASSESSMENTS,
  ATTESTING_ROLES,
  ITEM_FIELDS,
  Origin,
  SECTION_FIELDS,
  SectionName,
} from '../../base/validation-report-fields.ts';

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

export type Field = Figure | Draft | Human;

export type Fields<F extends Readonly<Record<string, Origin>>> = {
  readonly [N in keyof F]: Extract<Field, { readonly marker: F[N] }>;
};

export type Section<N extends SectionName> = Fields<(typeof SECTION_FIELDS)[N]>;

type Item<N extends keyof typeof ITEM_FIELDS> = Fields<(typeof ITEM_FIELDS)[N]> & {
  readonly id: string;
};

/** Its `id` is a name in the spec; `threshold_…` or `overrides` for what people set outside the spec. */
export type ReportedLimit = Item<'risk_controls'> & { readonly articles: readonly string[] };
/** Its `id` is such as `v3`; a bare number could be mistaken for a list index. */
export type VersionChange = Item<'changes'>;
/** Its `id` is that of a task. */
export type Incident = Item<'incidents'>;

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

type Assessment = (typeof ASSESSMENTS)[number];

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

export type Role = (typeof ATTESTING_ROLES)[number];

export interface Attestation {
  readonly administrator_id: string;
  readonly name: string;
  readonly at: string;
  /** Content hash of the report that the person read. */
  readonly content_hash: string;
}

export interface Report extends Readonly<{ [N in SectionName]: Section<N> }> {
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
  /** `to` is exclusive. */
  readonly period: { readonly year: number; readonly from: string; readonly to: string };
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
  readonly annex_i: Readonly<Record<'nature' | 'scale' | 'complexity', readonly Criterion[]>>;
  readonly risk_controls: readonly ReportedLimit[];
  readonly changes: readonly VersionChange[];
  readonly incidents: readonly Incident[];
  readonly articles: readonly ArticleRow[];
  readonly deficiencies: readonly Deficiency[];
  readonly attestations: Readonly<Record<Role, Attestation | null>> & {
    readonly internal_audit_absent_reason: Human;
  };
}
