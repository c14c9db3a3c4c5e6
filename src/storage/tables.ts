import type { Kysely } from 'kysely';
import type { DeliveryStatus, NotificationCondition } from '../base/notifications.ts';

/** Connection for queries: `storage.read`, or the transaction of a `storage.write`. */
export type Db = Kysely<Tables>;

/**
 * The tables that `migrations.ts` creates. Columns are text or numbers, on SQLite as on PostgreSQL.
 * Times are milliseconds since the Unix epoch. Lists and objects are JSON text. Hashes are in hex.
 * `created_by`, `set_by` and so on are actors as in the audit log, such as `administrator:…`.
 */
export interface Tables {
  customers: CustomersTable;
  plans: PlansTable;
  contracts: ContractsTable;
  deployments: InstallationsTable;
  signing_keys: SigningKeysTable;
  pending_signing_keys: PendingSigningKeysTable;
  license_trust: LicenseTrustTable;
  license_endorsement: LicenseEndorsementTable;
  license_leases: LicenseLeasesTable;
  renewals: RenewalsTable;
  devices: DevicesTable;
  enrolment_codes: EnrollmentCodesTable;
  used_proofs: UsedProofsTable;
  server_secrets: ServerSecretsTable;
  administrators: AdministratorsTable;
  recovery_codes: RecoveryCodesTable;
  failed_tries: FailedTriesTable;
  known_networks: KnownNetworksTable;
  api_tokens: ApiTokensTable;
  step_ups: StepUpsTable;
  audit_entries: AuditEntriesTable;
  audit_head: AuditHeadTable;
  bots: BotsTable;
  bot_versions: BotVersionsTable;
  bot_events: BotEventsTable;
  bot_numbers: BotNumbersTable;
  packed_bars: PackedBarsTable;
  stored_bars: StoredBarsTable;
  bot_snapshots: BotSnapshotsTable;
  bot_event_heads: BotEventHeadsTable;
  bot_event_archives: BotEventArchivesTable;
  idempotency_keys: IdempotencyKeysTable;
  bot_deployments: BotDeploymentsTable;
  tasks: TasksTable;
  task_files: TaskFilesTable;
  workers: WorkersTable;
  trading_sessions: TradingSessionsTable;
  halts: HaltsTable;
  halted_deployments: HaltedDeploymentsTable;
  bundles: BundlesTable;
  unsaved_bundles: UnsavedBundlesTable;
  sessions: SessionsTable;
  passkeys: PasskeysTable;
  challenges: ChallengesTable;
  production_deployments: ProductionDeploymentsTable;
  runners: RunnersTable;
  validation_reports: ValidationReportsTable;
  validation_drafts: ValidationDraftsTable;
  thresholds: ThresholdsTable;
  overrides: OverridesTable;
  notification_rules: NotificationRulesTable;
  notification_deliveries: NotificationDeliveriesTable;
  notification_scan: NotificationScanTable;
  chat_sessions: ChatSessionsTable;
  chat_turns: ChatTurnsTable;
  agent_schedules: AgentSchedulesTable;
  agent_runs: AgentRunsTable;
  knowledge_documents: KnowledgeDocumentsTable;
  knowledge_passages: KnowledgePassagesTable;
  knowledge_unlisted: KnowledgeUnlistedTable;
  trial_entries: TrialEntriesTable;
  trial_head: TrialHeadTable;
  searches: SearchesTable;
  search_inputs: SearchInputsTable;
  search_shards: SearchShardsTable;
  database_identity: DatabaseIdentityTable;
  size_samples: SizeSamplesTable;
}

/** One row; see `DatabaseIdentity`. */
export interface DatabaseIdentityTable {
  id: 1;
  database_id: string;
  epoch: number;
  place: string | null;
  superseded_by: number | null;
}

/** The last measured size of a table on each day. */
export interface SizeSamplesTable {
  /** Name of the table. */
  name: string;
  /** Days since the Unix epoch. */
  day: number;
  bytes: number;
  measured_at: number;
}

export interface CustomersTable {
  customer_id: string;
  name: string;
  created_at: number;
}

export interface PlansTable {
  plan_id: string;
  name: string;
  /** JSON list of names. */
  entitlements: string;
  /** TTL of leases under this plan; null for the default of the server. */
  ttl_seconds: number | null;
  grace_period_seconds: number | null;
  created_at: number;
  /** Product of leases under this plan; null for the product in the server's settings. */
  product: string | null;
  binding: 'none' | 'device' | 'machine';
}

export interface ContractsTable {
  contract_id: string;
  customer_id: string;
  plan_id: string;
  /** JSON list of names, in addition to the entitlements of the plan. */
  entitlements: string;
  /** Overrides the plan's; null to use the plan's. */
  ttl_seconds: number | null;
  grace_period_seconds: number | null;
  /** Leases under the contract are not valid after this time. */
  ends_at: number;
  created_at: number;
}

export interface InstallationsTable {
  deployment_id: string;
  contract_id: string;
  name: string;
  created_at: number;
  revoked_at: number | null;
  revoked_by: string | null;
  revoked_reason: string | null;
}

export interface SigningKeysTable {
  /** RFC 7638 thumbprint. */
  public_key_id: string;
  /** The public key, base64url. The private key is never stored. */
  x: string;
  status: 'active' | 'retiring' | 'retired';
  activated_at: number;
  retiring_at: number | null;
  retired_at: number | null;
}

/** Keys with which a server was started, but which the signed keyset does not contain yet. */
export interface PendingSigningKeysTable {
  public_key_id: string;
  x: string;
  seen_at: number;
}

/** The trust root of the issuer; at most one row. */
export interface LicenseTrustTable {
  id: number;
  /** Envelopes of the chain of roots, oldest first, as JSON. */
  roots: string;
  /** The envelope of the signed keyset, as JSON. */
  keyset: string;
  root_fingerprint: string;
  root_version: number;
  root_expires_at: number;
  keyset_version: number;
  keyset_expires_at: number;
  stored_at: number;
  stored_by: string;
}

/** The keyset that a signing key endorses if the issuer has no trust root; at most one row. */
export interface LicenseEndorsementTable {
  id: number;
  version: number;
  /** The envelope, as JSON. */
  keyset: string;
}

export interface LicenseLeasesTable {
  lease_id: string;
  deployment_id: string;
  customer_id: string;
  contract_id: string;
  /** The first lease of this chain of renewals. Revocation applies to the whole lineage. */
  lineage_id: string;
  previous_lease_id: string | null;
  renewal_id: string | null;
  /** The device that requested the lease; null if an administrator did. */
  device_id: string | null;
  issued_by: string;
  public_key_id: string;
  /** JSON list of the entitlements of plan and contract at the time of issue. */
  entitlements: string;
  issued_at: number;
  expires_at: number;
  grace_ends_at: number;
  revoked_at: number | null;
  revoked_by: string | null;
  revoked_reason: string | null;
}

/** Responses to renewals, so that a repeated request returns the same bytes. */
export interface RenewalsTable {
  deployment_id: string;
  renewal_id: string;
  lease_id: string;
  /** SHA-256 of the relevant parts of the request: the same id with another hash is rejected. */
  request_hash: string;
  /** The only stored copy of the signed lease; null once erased. */
  answer: string | null;
  answered_at: number;
}

export interface DevicesTable {
  /** RFC 7638 thumbprint of its public key. */
  device_id: string;
  deployment_id: string;
  /** The public key, base64url. */
  x: string;
  name: string;
  enrolled_at: number;
  /** The device whose key this key replaces on first use. */
  replaces: string | null;
  first_used_at: number | null;
  revoked_at: number | null;
  revoked_by: string | null;
  revoked_reason: string | null;
  /** `machineHash` of the machine; null if the plan did not need one. */
  machine_hash: string | null;
}

export interface EnrollmentCodesTable {
  /** SHA-256. */
  code_hash: string;
  deployment_id: string;
  created_by: string;
  created_at: number;
  expires_at: number;
  used_at: number | null;
  /** The device that used the code. */
  device_id: string | null;
}

/** `jti` of the proofs that devices have used; each is valid for one request. */
export interface UsedProofsTable {
  device_id: string;
  jti: string;
  /** From then on the proof is rejected as too old, so that the row can be deleted. */
  expires_at: number;
}

/** Secrets that the servers on one database share. */
export interface ServerSecretsTable {
  name: string;
  value: string;
}

export interface AdministratorsTable {
  administrator_id: string;
  name: string;
  /** `scrypt$…`, see `password.ts`. */
  password_hash: string;
  /** Base32. */
  totp_secret: string;
  /** The last time step of 30 s that was used: RFC 6238 §5.2 forbids a second use. */
  totp_last_step: number;
  created_at: number;
  disabled_at: number | null;
}

export interface RecoveryCodesTable {
  /** SHA-256. */
  code_hash: string;
  administrator_id: string;
  used_at: number | null;
}

export interface FailedTriesTable {
  /** Login name, known or not, or the administrator whose codes were tried. */
  subject: string;
  /** Network of the client; empty if unknown. */
  network: string;
  failed_at: number;
}

/** Networks from which administrators have logged in. */
export interface KnownNetworksTable {
  administrator_id: string;
  network: string;
  /** Time of the last login. */
  seen_at: number;
}

export interface ApiTokensTable {
  token_id: string;
  administrator_id: string;
  /** Purpose, as its creator described it. */
  label: string;
  /** SHA-256. */
  secret_hash: string;
  /** JSON list. */
  scopes: string;
  created_at: number;
  /** The last second of the year 9999 for a token that does not expire. */
  expires_at: number;
  revoked_at: number | null;
  /** JSON list of the installations to which the token is restricted; null for all. */
  deployment_ids: string | null;
  /** Customer to which the token is restricted; null for all. */
  customer_id: string | null;
  /** Maximum TTL of leases issued with it; null for the server's maximum. */
  max_ttl_seconds: number | null;
}

export interface StepUpsTable {
  /** SHA-256. */
  token_hash: string;
  administrator_id: string;
  action: string;
  target: string;
  expires_at: number;
  used_at: number | null;
}

export interface AuditEntriesTable {
  /** From 1, without gaps. */
  seq: number;
  recorded_at: number;
  /** `administrator:…`, `device:…`, `operator` (a shell on the server's machine) or `server`. */
  actor: string;
  action: string;
  /** `lease:…`, `deployment:…` and so on. */
  target: string;
  /** JSON object. */
  details: string;
  /** 64 zeros for the first entry. */
  prev_hash: string;
  hash: string;
}

/** One row: the last entry of the audit log, so that removed entries at the end are detected. */
export interface AuditHeadTable {
  id: 1;
  seq: number;
  hash: string;
}

/** Executed trials and openings of holdouts, as a hash chain. */
export interface TrialEntriesTable {
  /** From 1, without gaps. */
  seq: number;
  recorded_at: number;
  kind: 'trials' | 'holdout_opened';
  /** Caller that created the task. */
  recorded_by: string;
  /** See `trialLock`. */
  lock_digest: string;
  /** See `trialKey`; the first one of packed trials; `task:` and the id of the task for an opening. */
  trial_key: string;
  /** Annualized; null for an opening and if it is undefined. */
  sharpe: number | null;
  family: string;
  /** JSON list. */
  symbols: string;
  bar_ms: number;
  window_from: number;
  window_to: number;
  prev_hash: string;
  hash: string;
  /** See `PackedTrials`; null for the trial of a backtest, and for an opening. */
  packed: string | null;
}

/** One row that identifies the last trial entry; written in the same transaction. */
export interface TrialHeadTable {
  id: 1;
  seq: number;
  hash: string;
}

/** The state of a bot after its last event, written in the same transaction as the event. */
export interface BotsTable {
  bot_id: string;
  slug: string;
  name: string;
  kind: 'trading' | 'research';
  status: 'draft' | 'active' | 'archived';
  current_version: number;
  created_at: number;
  updated_at: number;
  /** The last event, so that removed events are detected; 0 and 64 zeros before the first. */
  event_seq: number;
  event_hash: string;
}

/** Rows are never changed or deleted. */
export interface BotVersionsTable {
  bot_id: string;
  /** From 1, without gaps. */
  version: number;
  /** `specHash` of the document. */
  hash: string;
  /** The spec as its author wrote it, as JSON. */
  document: string;
  created_at: number;
  created_by: string;
  /** Bundle with the code of the strategy; null for a built-in strategy. */
  bundle_hash: string | null;
}

export interface BotEventsTable {
  bot_id: string;
  /** From 1 for each bot, without gaps. */
  seq: number;
  event_id: string;
  /** Version of the bot that the event concerns. */
  version: number;
  run_id: string | null;
  kind: string;
  occurred_at: number;
  /** Never earlier than that of the previous event. */
  recorded_at: number;
  /** Event that caused this one. */
  causation_id: string | null;
  /** JSON object. */
  payload: string;
  /** 64 zeros for the first event of a bot. */
  prev_hash: string;
  hash: string;
}

/** Short numbers of bots with rows in `packed_bars`. */
export interface BotNumbersTable {
  bot_no: number;
  bot_id: string;
}

/** Pairs of events that trading sessions record with each bar; see `packed-bars.ts`. */
export interface PackedBarsTable {
  bot_no: number;
  /** Sequence number of the last event in the row. */
  seq: number;
  /** Distance to an earlier event `session.state` of the same run in `bot_events`. */
  base: number;
  recorded_at: number;
  /** Key in `stored_bars`. */
  bars: Uint8Array;
  /** SHA-256 of the last event in the row. */
  hash: Uint8Array;
  /** Difference from the base; null if the row has no `session.state`. */
  state: string | null;
}

/**
 * Payloads of `data.bars` events, each stored once for all bots. A row must exist for as long as an
 * event refers to it.
 */
export interface StoredBarsTable {
  /** First 16 bytes of the SHA-256 of the payload. */
  digest: Uint8Array;
  payload: string;
}

/** State of a bot after an event, so that earlier events need not be read. Rows may be deleted. */
export interface BotSnapshotsTable {
  bot_id: string;
  /** The last event included. */
  seq: number;
  /** Canonical JSON (RFC 8785). */
  state: string;
  /** SHA-256 of `state`. */
  state_hash: string;
}

/** The last archived event of each bot that has archived events. Later events are in `bot_events`. */
export interface BotEventHeadsTable {
  bot_id: string;
  seq: number;
  hash: string;
}

/** A file with consecutive events of one month; see `src/events/archive`. */
export interface BotEventArchivesTable {
  bot_id: string;
  first_seq: number;
  last_seq: number;
  /** UTC month in which the events were recorded, such as `2026-01`. */
  month: string;
  /** Hash of the event before the first. */
  prev_hash: string;
  /** Hash of the last event. */
  hash: string;
  last_recorded_at: number;
  /** State of the bot after the last event, as in `bot_snapshots`, and its hash. */
  state: string;
  state_hash: string;
  /** Path of the file below the directory of archives, with slashes. */
  file: string;
  file_bytes: number;
  file_sha256: string;
  archived_at: number;
}

/** Responses to requests with an `Idempotency-Key`, which a repeated request returns again. */
export interface IdempotencyKeysTable {
  /** `administrator:…`; keys are unique per caller. */
  caller: string;
  key: string;
  /** SHA-256 of the request: the same key with another hash is rejected. */
  request_hash: string;
  /** JSON. */
  body: string;
  answered_at: number;
}

/** Deployment of a version of a bot. A row that has ended is never changed. */
export interface BotDeploymentsTable {
  deployment_id: string;
  bot_id: string;
  version: number;
  /** `test` is for tests and searches of parameters, which do not trade. */
  target: 'backtest' | 'paper' | 'k8s' | 'test';
  status: 'pending' | 'running' | 'success' | 'failed' | 'halted';
  task_id: string;
  /** JSON object; null unless it succeeded. */
  result_summary: string | null;
  created_at: number;
  ended_at: number | null;
}

/** Background work. A row that has ended is never changed. */
export interface TasksTable {
  task_id: string;
  kind:
    | 'backtest'
    | 'paper'
    | 'production'
    | 'conformance'
    | 'stress'
    | 'sweep'
    | 'walk_forward'
    | 'robustness';
  bot_id: string;
  version: number;
  deployment_id: string;
  status: 'queued' | 'running' | 'success' | 'failed' | 'canceled';
  /** JSON object. */
  input: string;
  /** Completed steps, of `progress_total` once that is known. */
  progress_done: number;
  progress_total: number | null;
  /** JSON object; null unless it succeeded. */
  result: string | null;
  /** JSON of an `ErrorData`; null unless it failed. */
  error: string | null;
  /** Number of starts, not counting those after which the worker released the task. */
  attempts: number;
  /** See `src/fleet/tasks/worker-id.ts`; null unless it is running. */
  worker_id: string | null;
  heartbeat_at: number | null;
  /** Lowest level of workers that run it; see `src/fleet/tasks/task-levels.ts`. */
  needs_level: number;
  /** W3C Trace Context of the request that queued it; null without tracing. */
  traceparent: string | null;
  cancel_requested_at: number | null;
  created_by: string;
  created_at: number;
  started_at: number | null;
  ended_at: number | null;
}

/** Running processes that execute tasks on one PostgreSQL database. */
export interface WorkersTable {
  worker_id: string;
  /** Maximum number of concurrent sessions. */
  paper_sessions: number;
  production_deployments: number;
  /** Version of service-local; null for versions that did not announce it. */
  version: string | null;
  heartbeat_at: number;
}

/** Files that a task has written, in parts. */
export interface TaskFilesTable {
  task_id: string;
  name: string;
  /** Position of the part, from 0. */
  place: number;
  /** Part of the gzip-compressed file, in base64. */
  data: string;
}

/**
 * State of a paper or production trading session after its last batch of events. For a paper session
 * it suffices to halt the session without its process.
 */
export interface TradingSessionsTable {
  task_id: string;
  bot_id: string;
  /** The first event of the trading session in the log of its bot: `run.queued`. */
  first_seq: number;
  /** Number of recorded batches of events and, in `steps`, of steps of the bars. */
  batches: number;
  steps: number;
  /** JSON of a `SessionState`. */
  state: string;
  /** Consecutive starts without progress. */
  failures: number;
  stop_requested_at: number | null;
  recorded_at: number;
  /** JSON of the subjects whose thresholds apply; null for sessions older than thresholds. */
  subjects: string | null;
  /** Number of its latches that people have lifted. */
  latches_lifted: number;
}

/** A halt stays in force until it is lifted; until then, nothing in its scope starts. */
export interface HaltsTable {
  halt_id: string;
  scope: 'bot' | 'all';
  /** Null for all bots. */
  bot_id: string | null;
  reason: string;
  requested_by: string;
  requested_at: number;
  lifted_at: number | null;
  lifted_by: string | null;
  lift_reason: string | null;
}

/** Deployments that a halt has ended. */
export interface HaltedDeploymentsTable {
  halt_id: string;
  deployment_id: string;
  /** JSON list of the orders that were working, `{order, symbol}`; null if unknown. */
  orders: string | null;
  /** Events in the log of the bot, from the first canceled order to the end of the run. */
  first_seq: number;
  last_seq: number;
}

/** Code and models of bots, each once. Rows are never changed. A bundle of a version is never deleted. */
export interface BundlesTable {
  hash: string;
  /** JSON. */
  files: string;
  created_at: number;
}

/** Files that backtests run instead of the files of their version; see `src/fleet/registry/unsaved-bundles.ts`. */
export interface UnsavedBundlesTable {
  task_id: string;
  bundle_hash: string;
}

/** Login sessions of administrators in browsers. Rows are deleted soon after they expire. */
export interface SessionsTable {
  session_id: string;
  administrator_id: string;
  /** SHA-256 of the secret in the cookie. */
  secret_hash: string;
  /** Sent by the pages of the session with each change. */
  csrf_token: string;
  signed_in_with: 'password' | 'passkey';
  /** May be empty. */
  user_agent: string;
  /** Null if unknown. */
  address: string | null;
  created_at: number;
  /** Time of the last request, rounded to the minute. */
  seen_at: number;
  /** Use does not extend it. */
  expires_at: number;
}

/** WebAuthn credentials of administrators. */
export interface PasskeysTable {
  passkey_id: string;
  administrator_id: string;
  /** Base64url; chosen by the authenticator. */
  credential_id: string;
  /** Base64url of the key in COSE form. */
  public_key: string;
  /** Signature counter of the authenticator; 0 if it does not count. */
  counter: number;
  /** JSON list of WebAuthn transports, such as `internal` or `usb`. */
  transports: string;
  /** The only host for which it signs. */
  site: string;
  name: string;
  created_at: number;
  last_used_at: number | null;
}

/** WebAuthn challenges; deleted when they are used. */
export interface ChallengesTable {
  /** SHA-256. */
  challenge_hash: string;
  purpose: 'sign_in' | 'step_up' | 'add';
  /** Null for `sign_in`, where the signature identifies the administrator. */
  administrator_id: string | null;
  /** Action and target of a step-up; null otherwise. */
  action: string | null;
  target: string | null;
  expires_at: number;
}

/** Deployments to Kubernetes clusters. */
export interface ProductionDeploymentsTable {
  deployment_id: string;
  bot_id: string;
  /** Name in `clusters_file`. */
  cluster: string;
  namespace: string;
  /** JSON of the `ProductionPlan` at the time of the request. */
  plan: string;
  /** Deployment that this one replaces, which must end successfully before. */
  replaces: string | null;
  /** Whether the replaced deployment has not ended yet. */
  waits: 0 | 1;
  /** JSON of the account that the replaced deployment left; null to start as the spec states. */
  opening: string | null;
  /** From this time on, objects of the deployment may exist in the cluster. */
  begun_at: number | null;
  /** Time at which the cluster confirmed that it has the token of the runner. */
  token_applied_at: number | null;
  applied_at: number | null;
  /** Time at which, after a request to end, no pod was left. */
  scaled_down_at: number | null;
  /** JSON of the last observed `ClusterState`; null before the first. */
  cluster_state: string | null;
}

/** The runner that trades for a deployment, and its last report. */
export interface RunnersTable {
  deployment_id: string;
  /** SHA-256 of the token that the cluster stores as a secret. */
  token_hash: string;
  /** Number of claims granted; requests with an earlier epoch are rejected. */
  epoch: number;
  /** Instance that has the claim; null before the first claim. */
  instance_id: string | null;
  claimed_until: number;
  reported_at: number | null;
  /** JSON of the last `RunnerReport`, without its batch; null before the first. */
  report: string | null;
  /** JSON: how it ended, and the state of its orders; null while it runs. */
  ended: string | null;
  /** Version of service-local in its last accepted report; null if it announced none. */
  version: string | null;
}

/** Rows are never changed or deleted. */
export interface ValidationReportsTable {
  bot_id: string;
  /** From 1 for each bot, without gaps. */
  version: number;
  /** Year that the report covers. */
  year: number;
  /** SHA-256 of the document. */
  hash: string;
  /** SHA-256 of the content that people attest. */
  content_hash: string;
  /** Canonical JSON (RFC 8785) of a `Report`. */
  document: string;
  frozen_at: number;
}

/** Answers that people have entered into the validation report of a bot for a year. */
export interface ValidationDraftsTable {
  bot_id: string;
  year: number;
  /** Number of saves and freezes so far, from 1. */
  revision: number;
  /** JSON of `Answers`. */
  answers: string;
  /** JSON of `Standing`, for the report over all bots. */
  standing: string;
  saved_at: number;
  saved_by: string;
}

/** Rows are never changed: another text under the same name replaces the document. */
export interface KnowledgeDocumentsTable {
  document_id: string;
  /** Such as `notes/risk.md`. */
  name: string;
  title: string;
  /** Number of documents of this name so far, including this one. */
  revision: number;
  /** Hash of the text in UTF-8. */
  sha256: string;
  /** Size of the text in UTF-8. */
  bytes: number;
  lines: number;
  /** Number of passages. */
  passages: number;
  text: string;
  added_at: number;
  added_by: string;
}

/**
 * Searchable parts of documents. The database maintains a full-text index of `terms`. Passages
 * without a document are not visible.
 */
export interface KnowledgePassagesTable {
  number: number;
  document_id: string;
  /** Position within its document, from 1. */
  ordinal: number;
  /** JSON list of the headings above the passage, outermost first. */
  heading: string;
  /** First and last line, both included, from 1. */
  first_line: number;
  last_line: number;
  text: string;
  /** Normalized words: see `src/research/knowledge/search-terms.ts`. */
  terms: string;
}

/** Documents that are being added or removed, so that they may have passages without a document. */
export interface KnowledgeUnlistedTable {
  document_id: string;
  since: number;
}

/** Rows are only added: the newest version for a subject and currency is in force. */
export interface ThresholdsTable {
  level: 'client' | 'instrument' | 'trader' | 'desk' | 'firm';
  subject: string;
  currency: string;
  version: number;
  /** JSON of `Limits`; null once the thresholds have been removed. */
  limits: string | null;
  rationale: string;
  set_by: string;
  set_at: number;
}

/** Permission for one order of a trading session to exceed limits, once two people have agreed. */
export interface OverridesTable {
  override_id: string;
  bot_id: string;
  /** Task of the trading session. */
  run_id: string;
  symbol: string;
  side: 'buy' | 'sell';
  max_quantity: number;
  worst_price: number | null;
  /** JSON list of the limits that the order may exceed. */
  controls: string;
  reason: string;
  requested_by: string;
  requested_at: number;
  expires_at: number;
  verified_by: string | null;
  verified_at: number | null;
  verify_reason: string | null;
  authorized_by: string | null;
  authorized_at: number | null;
  authorize_reason: string | null;
  used_at: number | null;
  /** Number of the order in its trading session. */
  used_order: number | null;
}

export interface NotificationRulesTable {
  rule_id: string;
  name: string;
  condition: NotificationCondition;
  /** A fraction for `drawdown`, hours for `lease`, seconds for `no_bars`, otherwise null. */
  amount: number | null;
  /** JSON list; null for all bots. */
  bot_ids: string | null;
  channel: string;
  created_by: string;
  created_at: number;
}

/** A notification to one channel. A row that has ended is never changed. */
export interface NotificationDeliveriesTable {
  /** All attempts send the same id. */
  delivery_id: string;
  /** Null for a test of a channel. */
  rule_id: string | null;
  rule_name: string;
  /** Identifies what happened; a rule notifies once of each. */
  occurrence: string;
  channel: string;
  /** JSON of a `Notice`. */
  notice: string;
  status: DeliveryStatus;
  /** Number of attempts that have begun. */
  attempts: number;
  /** Null once it has ended. During an attempt, the time after which another server repeats it. */
  next_attempt_at: number | null;
  /** Why the last attempt failed. */
  error: string | null;
  created_at: number;
  ended_at: number | null;
}

/** Time until which halts, failed tasks and alerts were compared with the rules; at most one row. */
export interface NotificationScanTable {
  id: number;
  scanned_until: number;
}

/** Conversations with research bots. */
export interface ChatSessionsTable {
  session_id: string;
  bot_id: string;
  /** Agent of the spec that answers; null for the bot itself. */
  agent_role: string | null;
  created_at: number;
  /** Only this administrator can continue the conversation. */
  created_by: string;
}

export interface ChatTurnsTable {
  turn_id: string;
  session_id: string;
  /** Position within the chat session, from 1. */
  number: number;
  status: 'running' | 'done' | 'failed' | 'interrupted';
  prompt: string;
  /** The answer so far, also of a failed turn. */
  answer: string;
  /** JSON of a `TurnRecord`; null until it has ended, and for interrupted turns. */
  record: string | null;
  provider: string;
  model: string | null;
  /** Process that runs the turn; see `newWorkerId`. */
  worker_id: string;
  started_at: number;
  /** After this time, the process no longer works on the turn. */
  deadline: number;
  ended_at: number | null;
}

/** Agents that run on a schedule. */
export interface AgentSchedulesTable {
  bot_id: string;
  role: string;
  /** Version of the bot whose schedule is used. */
  version: number;
  /** Interval in that version. */
  every: string;
  /** Null if the schedule is off. */
  next_run_at: number | null;
  /** Administrator on whose behalf the agent runs. */
  administrator_id: string;
  /** Token with which the schedule was turned on; null if that was done in the console. */
  token_id: string | null;
  /** JSON list. */
  scopes: string;
  started_at: number;
  stopped_at: number | null;
  /** An administrator or `server`. */
  stopped_by: string | null;
  stopped_reason: string | null;
}

/** Chat turns in which an agent was asked for a report. */
export interface AgentRunsTable {
  turn_id: string;
  bot_id: string;
  role: string;
  cause: 'schedule' | 'person';
  /** Sequence number of the event with the report; null before. */
  report_seq: number | null;
}

/** Searches whose trials run in shards. */
export interface SearchesTable {
  search_id: string;
  /** Identifies the search for the client. */
  digest: string;
  title: string;
  /** Version of the package of the client, which its workers must have. */
  package: string;
  created_by: string;
  created_at: number;
  /** Time of the last request of the client. */
  used_at: number;
  /** Number of shards that have ended, deleted ones included. */
  ended_count: number;
  /** W3C Trace Context of the request that created it; null without tracing. */
  traceparent: string | null;
}

/** Parts of the inputs of shards. */
export interface SearchInputsTable {
  search_id: string;
  digest: string;
  place: number;
  /** Number of parts of the input. */
  parts: number;
  /** In base64. */
  data: string;
}

export interface SearchShardsTable {
  search_id: string;
  shard_id: string;
  input_digest: string;
  /** JSON list of `Trial`. */
  trials: string;
  trial_count: number;
  status: 'queued' | 'running' | 'success' | 'failed';
  attempts: number;
  worker_id: string | null;
  heartbeat_at: number | null;
  created_at: number;
  /** Place among the ended shards of the search, from 1. */
  ended_no: number | null;
  /** JSON of `ShardResults`, with the file in base64. */
  result: string | null;
  /** JSON of `ErrorData`. */
  error: string | null;
}
