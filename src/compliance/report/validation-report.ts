/** The JSON of a validation report, as the schema in `api` describes it. Times are RFC 3339 in UTC. */
import type { SaveRequest } from '../../api/validation-drafts.ts';
import type {
  AttestRequest,
  FreezeRequest,
  ValidationReport,
} from '../../api/validation-reports.ts';

type DeepReadonly<T> = T extends object ? { readonly [N in keyof T]: DeepReadonly<T[N]> } : T;

export type Report = DeepReadonly<Omit<ValidationReport, 'hash' | 'revision'>>;

/** A value read from the records; running its query again gives a value with the same hash. */
export type Figure = Report['scope']['fleet'];
export type Human = Report['scope']['firm'];
/** Its `draft` has no effect until a person enters a value. */
export type Draft = Report['summary']['method'];
export type Field = Figure | Draft | Human;

/** A fact that is missing or incomplete in the records, with the affected paragraphs, see `cite`. */
export type Gap = Report['generated_by']['gaps'][number];
/** Its `id` is a name in the spec; `threshold_…` or `overrides` for what people set outside the spec. */
export type ReportedLimit = Report['risk_controls'][number];
/** Its `id` is such as `v3`; a bare number could be mistaken for a list index. */
export type VersionChange = Report['changes'][number];
/** Its `id` is that of a task. */
export type Incident = Report['incidents'][number];

export type Freezing = Partial<DeepReadonly<FreezeRequest>>;
export type Saving = Partial<DeepReadonly<SaveRequest>>;
export type Attesting = AttestRequest;
