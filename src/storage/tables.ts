import type { Kysely } from 'kysely';

/** The connection on which a query runs: of reads, or within a write. */
export type Db = Kysely<Tables>;

/**
 * The tables as the code sees them; `migrations.ts` makes them. The same on SQLite and PostgreSQL:
 * text, whole numbers, and nothing else. Times are milliseconds since the Unix epoch. Lists and
 * objects are JSON text. What is absent is null.
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
  bot_snapshots: BotSnapshotsTable;
  idempotency_keys: IdempotencyKeysTable;
  bot_deployments: BotDeploymentsTable;
  tasks: TasksTable;
  task_files: TaskFilesTable;
  workers: WorkersTable;
  trading_sessions: TradingSessionsTable;
  halts: HaltsTable;
  halted_deployments: HaltedDeploymentsTable;
  bundles: BundlesTable;
  sessions: SessionsTable;
  passkeys: PasskeysTable;
  challenges: ChallengesTable;
  production_deployments: ProductionDeploymentsTable;
  runners: RunnersTable;
  validation_reports: ValidationReportsTable;
  thresholds: ThresholdsTable;
  overrides: OverridesTable;
  chat_sessions: ChatSessionsTable;
  chat_turns: ChatTurnsTable;
  agent_schedules: AgentSchedulesTable;
  agent_runs: AgentRunsTable;
  knowledge_documents: KnowledgeDocumentsTable;
  knowledge_passages: KnowledgePassagesTable;
  knowledge_unlisted: KnowledgeUnlistedTable;
  database_identity: DatabaseIdentityTable;
}

/** One row. See `DatabaseIdentity`. */
export interface DatabaseIdentityTable {
  id: 1;
  database_id: string;
  epoch: number;
  place: string | null;
  superseded_by: number | null;
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
  /** Of leases under this plan; null for the server's own. */
  ttl_seconds: number | null;
  grace_period_seconds: number | null;
  created_at: number;
  /** Product of leases under this plan; null for the product in the server's settings. */
  product: string | null;
  /** Binding of leases under this plan. */
  binding: 'none' | 'device' | 'machine';
}

export interface ContractsTable {
  contract_id: string;
  customer_id: string;
  plan_id: string;
  /** JSON list of names: what the customer has beyond the plan. */
  entitlements: string;
  /** Stronger than the plan's; null for the plan's. */
  ttl_seconds: number | null;
  grace_period_seconds: number | null;
  /** No lease under it is worth anything from here on. */
  ends_at: number;
  created_at: number;
}

export interface InstallationsTable {
  deployment_id: string;
  contract_id: string;
  name: string;
  created_at: number;
  /** Since when it gets no leases; null when it does. */
  revoked_at: number | null;
  revoked_by: string | null;
  revoked_reason: string | null;
}

export interface SigningKeysTable {
  /** RFC 7638 thumbprint. */
  public_key_id: string;
  /** The public key, base64url. The private one is never here. */
  x: string;
  status: 'active' | 'retiring' | 'retired';
  activated_at: number;
  retiring_at: number | null;
  retired_at: number | null;
}

/** Keys with which a server was started and that the signed keyset does not hold yet. */
export interface PendingSigningKeysTable {
  public_key_id: string;
  x: string;
  seen_at: number;
}

/** The trust root that administrators stored; at most one row. */
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

/** The keyset that a signing key vouches for, where the issuer has no root; at most one row. */
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
  /** The first lease of the chain of renewals to which this one belongs. Revoking is by lineage. */
  lineage_id: string;
  previous_lease_id: string | null;
  renewal_id: string | null;
  /** The device it was given to; null when an administrator asked for it. */
  device_id: string | null;
  /** As in the audit log: `administrator:…` or `device:…`. */
  issued_by: string;
  public_key_id: string;
  /** JSON list: plan and contract as they were when it was issued. */
  entitlements: string;
  issued_at: number;
  expires_at: number;
  grace_ends_at: number;
  revoked_at: number | null;
  revoked_by: string | null;
  revoked_reason: string | null;
}

/** The answers to renewals, so that asking again gets the same bytes. */
export interface RenewalsTable {
  deployment_id: string;
  renewal_id: string;
  lease_id: string;
  /** SHA-256 of what decides the answer, in hex: the same id with another request is refused. */
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
  /** The device whose key this one takes the place of, once it is first used. */
  replaces: string | null;
  first_used_at: number | null;
  revoked_at: number | null;
  revoked_by: string | null;
  revoked_reason: string | null;
  /** `machineHash` of the machine; null where its plan did not need one. */
  machine_hash: string | null;
}

export interface EnrollmentCodesTable {
  /** SHA-256 in hex. */
  code_hash: string;
  deployment_id: string;
  created_by: string;
  created_at: number;
  expires_at: number;
  used_at: number | null;
  /** The device that used it. */
  device_id: string | null;
}

/** `jti` of proofs, each good for one request. */
export interface UsedProofsTable {
  device_id: string;
  jti: string;
  /** When it can be forgotten: the proof is refused as too old by then. */
  expires_at: number;
}

/** What all servers on one database must know alike, and nobody else. */
export interface ServerSecretsTable {
  name: string;
  value: string;
}

export interface AdministratorsTable {
  administrator_id: string;
  /** For login; unique. */
  name: string;
  /** `scrypt$…`, see `password.ts`. */
  password_hash: string;
  /** Base32. */
  totp_secret: string;
  /** The last time step (of 30 s) that was used: RFC 6238 §5.2 forbids a second use. */
  totp_last_step: number;
  created_at: number;
  disabled_at: number | null;
}

export interface RecoveryCodesTable {
  /** SHA-256 in hex. */
  code_hash: string;
  administrator_id: string;
  used_at: number | null;
}

export interface FailedTriesTable {
  /** What was tried: to log in under a name, which may be nobody's, or codes of an administrator. */
  subject: string;
  /** Network of the client; empty if it is not known. */
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
  /** What it is for, as whoever made it put it. */
  label: string;
  /** SHA-256 in hex. */
  secret_hash: string;
  /** JSON list. */
  scopes: string;
  created_at: number;
  /** The last second of the year 9999 for a token that does not expire. */
  expires_at: number;
  revoked_at: number | null;
  /** JSON list of the installations to which it is narrowed; null for all. */
  deployment_ids: string | null;
  /** Customer to which it is narrowed; null for all. */
  customer_id: string | null;
  /** Maximum TTL of leases issued with it; null for the server's maximum. */
  max_ttl_seconds: number | null;
}

export interface StepUpsTable {
  /** SHA-256 in hex. */
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
  /** Hex; of the first entry 64 zeros. */
  prev_hash: string;
  hash: string;
}

/** One row: what the last entry is, so that a cut-off end is noticed. */
export interface AuditHeadTable {
  id: 1;
  seq: number;
  hash: string;
}

/** What is said here of a bot is what its events come to, and is written together with them. */
export interface BotsTable {
  bot_id: string;
  slug: string;
  name: string;
  kind: 'trading' | 'research';
  status: 'draft' | 'active' | 'archived';
  /** Of its versions, the last. */
  current_version: number;
  created_at: number;
  updated_at: number;
  /** The last of its events, so that a cut-off end is noticed; 0 and 64 zeros before the first. */
  event_seq: number;
  event_hash: string;
}

/** Never changed, and never deleted. */
export interface BotVersionsTable {
  bot_id: string;
  /** From 1, without gaps. */
  version: number;
  /** `specHash` of the document. */
  hash: string;
  /** JSON: the spec as its author wrote it. */
  document: string;
  created_at: number;
  /** As in the audit log: `administrator:…`. */
  created_by: string;
  /** Of the strategy's own code; null for a built-in strategy. */
  bundle_hash: string | null;
}

export interface BotEventsTable {
  bot_id: string;
  /** From 1 for each bot, without gaps. */
  seq: number;
  event_id: string;
  /** The version of the bot of which it tells. */
  version: number;
  run_id: string | null;
  kind: string;
  occurred_at: number;
  /** Never before that of the event before. */
  recorded_at: number;
  /** The event that led to this one. */
  causation_id: string | null;
  /** JSON object. */
  payload: string;
  /** Hex; of the first event of a bot 64 zeros. */
  prev_hash: string;
  hash: string;
}

/** What events come to, so that not all of them need to be read. Deleting rows changes nothing. */
export interface BotSnapshotsTable {
  bot_id: string;
  /** The last event that is in it. */
  seq: number;
  /** Canonical JSON (RFC 8785). */
  state: string;
  /** SHA-256 of the state, in hex. */
  state_hash: string;
}

/** The answers to requests with an `Idempotency-Key`, so that asking again does nothing again. */
export interface IdempotencyKeysTable {
  /** `administrator:…`: keys of different callers have nothing to do with each other. */
  caller: string;
  key: string;
  /** SHA-256 in hex: the same key with another request is refused. */
  request_hash: string;
  /** JSON. */
  body: string;
  answered_at: number;
}

/** A version of a bot put to use. What has ended stays as it ended. */
export interface BotDeploymentsTable {
  deployment_id: string;
  bot_id: string;
  version: number;
  /** `test` stands for conformance and stress tests, which trade with nobody. */
  target: 'backtest' | 'paper' | 'k8s' | 'test';
  status: 'pending' | 'running' | 'success' | 'failed' | 'halted';
  /** The work that is done for it. */
  task_id: string;
  /** JSON object: what came of it; null unless it was a success. */
  result_summary: string | null;
  created_at: number;
  ended_at: number | null;
}

/** Work in the background. What has ended stays as it ended. */
export interface TasksTable {
  task_id: string;
  kind: 'backtest' | 'paper' | 'production' | 'conformance' | 'stress';
  bot_id: string;
  version: number;
  deployment_id: string;
  status: 'queued' | 'running' | 'success' | 'failed' | 'canceled';
  /** JSON object: what was asked for. */
  input: string;
  /** In steps of the work, of which there are `progress_total` once that is known. */
  progress_done: number;
  progress_total: number | null;
  /** JSON object; null unless it was a success. */
  result: string | null;
  /** JSON object: why it failed; else null. */
  error: string | null;
  /** How often it was begun, but for those that were given back in good order. */
  attempts: number;
  /** Who is at it: see `src/fleet/tasks/worker-id.ts`; null unless it is running. */
  worker_id: string | null;
  /** When the worker last was heard of. */
  heartbeat_at: number | null;
  cancel_requested_at: number | null;
  /** As in the audit log: `administrator:…`. */
  created_by: string;
  created_at: number;
  started_at: number | null;
  ended_at: number | null;
}

/** Processes on one PostgreSQL database that run tasks, except those that have shut down. */
export interface WorkersTable {
  worker_id: string;
  /** Maximum number of concurrent sessions. */
  paper_sessions: number;
  production_deployments: number;
  heartbeat_at: number;
}

/** The files that a task made, in parts. */
export interface TaskFilesTable {
  task_id: string;
  name: string;
  /** From 0. */
  place: number;
  /** A part of the file, which is compressed by gzip as a whole, in base64. */
  data: string;
}

/**
 * Where a session, on paper or in production, is as of its last batch of events: of one on paper, what
 * is needed to halt it without it.
 */
export interface TradingSessionsTable {
  task_id: string;
  bot_id: string;
  /** The first event of the session in the log of its bot: `run.queued`. */
  first_seq: number;
  /** How many batches, and steps of bars, have been recorded. */
  batches: number;
  steps: number;
  /** JSON: a `SessionState`. */
  state: string;
  /** How often in a row it was begun and came to nothing. */
  failures: number;
  stop_requested_at: number | null;
  recorded_at: number;
  /** JSON: for whom it trades; null of those from before there were thresholds. */
  subjects: string | null;
  /** How many of its latches people have lifted. */
  latches_lifted: number;
}

/** A halt stays in force until it is lifted: nothing of what it is about starts before. */
export interface HaltsTable {
  halt_id: string;
  scope: 'bot' | 'all';
  /** Null for all bots. */
  bot_id: string | null;
  reason: string;
  /** As in the audit log: `administrator:…`. */
  requested_by: string;
  requested_at: number;
  lifted_at: number | null;
  lifted_by: string | null;
  lift_reason: string | null;
}

/** What a halt has ended. */
export interface HaltedDeploymentsTable {
  halt_id: string;
  deployment_id: string;
  /** JSON list: the orders that were working, `{order, symbol}`; null when nobody knows. */
  orders: string | null;
  /** What the log of the bot tells of it, from the first canceled order to the end of the run. */
  first_seq: number;
  last_seq: number;
}

/** The code of strategies, each once. Never changed, and never deleted. */
export interface BundlesTable {
  hash: string;
  /** JSON. */
  files: string;
  created_at: number;
}

/** Of administrators in browsers. It is there for as long as it can be used, or not much longer. */
export interface SessionsTable {
  session_id: string;
  administrator_id: string;
  /** SHA-256, in hex, of what the cookie has. */
  secret_hash: string;
  /** What the session's own pages send with each change. */
  csrf_token: string;
  signed_in_with: 'password' | 'passkey';
  /** Of the browser, as it calls itself; may be empty. */
  user_agent: string;
  /** From where; null where it is not known. */
  address: string | null;
  created_at: number;
  /** To the minute. */
  seen_at: number;
  /** However often it is used. */
  expires_at: number;
}

/** WebAuthn credentials of administrators. */
export interface PasskeysTable {
  passkey_id: string;
  administrator_id: string;
  /** Base64url, as the authenticator names it. */
  credential_id: string;
  /** Base64url of the key in COSE form. */
  public_key: string;
  /** How often it has signed, as it says; 0 of one that does not count. */
  counter: number;
  /** JSON list: how browsers reach it, such as `internal` or `usb`. */
  transports: string;
  /** The host for which alone it signs. */
  site: string;
  name: string;
  created_at: number;
  last_used_at: number | null;
}

/** What a passkey is to sign, once and soon; deleted when it is used. */
export interface ChallengesTable {
  /** SHA-256 in hex. */
  challenge_hash: string;
  purpose: 'sign_in' | 'step_up' | 'add';
  /** Null for `sign_in`: who it is shows when it is signed. */
  administrator_id: string | null;
  /** With the target, of a step-up. */
  action: string | null;
  target: string | null;
  expires_at: number;
}

/** What is known of a deployment to a cluster besides what it trades. */
export interface ProductionDeploymentsTable {
  deployment_id: string;
  bot_id: string;
  /** As `clusters_file` names it. */
  cluster: string;
  namespace: string;
  /** JSON: a `ProductionPlan`, as it was settled when it was asked for. */
  plan: string;
  /** The deployment that has to end before, and well, which this one replaces. */
  replaces: string | null;
  /** Whether that has not ended yet. */
  waits: 0 | 1;
  /** JSON: the account that the one before has left; null where the spec says what it begins with. */
  opening: string | null;
  /** Since when the cluster may have something of it. */
  begun_at: number | null;
  /** Since when it is known that the cluster has the runner's token. */
  token_applied_at: number | null;
  applied_at: number | null;
  /** Since when it is known that no pod is left, after it was to end. */
  scaled_down_at: number | null;
  /** JSON: a `ClusterState`, as it was observed last; null before. */
  cluster_state: string | null;
}

/** Who trades for a deployment, and what was heard of him last. */
export interface RunnersTable {
  deployment_id: string;
  /** SHA-256 in hex of what the cluster has as its secret. */
  token_hash: string;
  /** How often the claim was granted: who comes with an earlier one is refused. */
  epoch: number;
  /** Who has the claim; null before the first. */
  instance_id: string | null;
  claimed_until: number;
  /** When it was heard of last. */
  reported_at: number | null;
  /** JSON: a `RunnerReport` without its batch; null before the first. */
  report: string | null;
  /** JSON: how it ended, and what became of its orders; null until it has. */
  ended: string | null;
}

/** Never changed, and never deleted. */
export interface ValidationReportsTable {
  bot_id: string;
  /** From 1 for each bot, without gaps. */
  version: number;
  /** That the report is about. */
  year: number;
  /** SHA-256 of the document, in hex. */
  hash: string;
  /** The same of what is attested. */
  content_hash: string;
  /** Canonical JSON (RFC 8785): a `Report`. */
  document: string;
  frozen_at: number;
}

/** Never changed: another text under its name is another document, in its place. */
export interface KnowledgeDocumentsTable {
  document_id: string;
  /** What people call it, such as `notes/risk.md`. */
  name: string;
  title: string;
  /** How many documents there were of this name, with this one. */
  revision: number;
  /** Of the text in UTF-8, in hex. */
  sha256: string;
  /** Of the text in UTF-8. */
  bytes: number;
  lines: number;
  /** How many. */
  passages: number;
  text: string;
  added_at: number;
  /** As in the audit log: `administrator:…`. */
  added_by: string;
}

/**
 * Parts of documents, which can be found by their words: both databases keep an index of `terms` by
 * themselves. Those without a document are not seen.
 */
export interface KnowledgePassagesTable {
  /** From 1. */
  number: number;
  document_id: string;
  /** From 1 within its document. */
  ordinal: number;
  /** JSON list: the headings below which it stands, the highest first. */
  heading: string;
  /** From 1, as the last one, which is in it, too. */
  first_line: number;
  last_line: number;
  text: string;
  /** Its words as they are compared: see `src/research/knowledge/terms.ts`. */
  terms: string;
}

/** Ids under which there are, or were, passages without a document: one that comes, or one that went. */
export interface KnowledgeUnlistedTable {
  document_id: string;
  since: number;
}

/** Only ever added to: the newest version of a subject and currency is in force. */
export interface ThresholdsTable {
  level: 'client' | 'instrument' | 'trader' | 'desk' | 'firm';
  subject: string;
  currency: string;
  version: number;
  /** JSON: `Limits`; null where there are none any more. */
  limits: string | null;
  rationale: string;
  /** As in the audit log. */
  set_by: string;
  set_at: number;
}

/** One order of one session that may pass limits, once two people have said so. */
export interface OverridesTable {
  override_id: string;
  bot_id: string;
  /** Task of the session. */
  run_id: string;
  symbol: string;
  side: 'buy' | 'sell';
  max_quantity: number;
  worst_price: number | null;
  /** JSON list: the limits that it may pass. */
  controls: string;
  reason: string;
  requested_by: string;
  requested_at: number;
  expires_at: number;
  verified_by: string | null;
  verified_at: number | null;
  verify_reason: string | null;
  authorised_by: string | null;
  authorised_at: number | null;
  authorise_reason: string | null;
  used_at: number | null;
  /** Its number in the session. */
  used_order: number | null;
}

/** Conversations with research bots. */
export interface ChatSessionsTable {
  session_id: string;
  bot_id: string;
  /** Of the agent of the spec that is talked to; null for the bot itself. */
  agent_role: string | null;
  created_at: number;
  /** `administrator:…`: only he goes on with it. */
  created_by: string;
}

export interface ChatTurnsTable {
  turn_id: string;
  session_id: string;
  /** From 1 within the session. */
  number: number;
  status: 'running' | 'done' | 'failed' | 'interrupted';
  prompt: string;
  /** What there is of it, also where the turn failed. */
  answer: string;
  /** JSON of what else came of it; null until it has ended, and where nobody could tell. */
  record: string | null;
  provider: string;
  model: string | null;
  /** Who is at it; see `newWorkerId`. */
  worker_id: string;
  started_at: number;
  /** After it, whoever was at it is not any more. */
  deadline: number;
  ended_at: number | null;
}

/** Agents of specs that somebody has had asked by themselves. */
export interface AgentSchedulesTable {
  bot_id: string;
  role: string;
  /** Of the bot, by which it was planned. */
  version: number;
  /** As that version has it. */
  every: string;
  /** Null when it is off. */
  next_run_at: number | null;
  /** As whom it is asked. */
  administrator_id: string;
  /** With which he turned it on; null for a session of the console. */
  token_id: string | null;
  /** JSON list. */
  scopes: string;
  started_at: number;
  stopped_at: number | null;
  /** As in the audit log: an administrator, or `server`. */
  stopped_by: string | null;
  stopped_reason: string | null;
}

/** Turns in which agents were asked for a report. */
export interface AgentRunsTable {
  turn_id: string;
  bot_id: string;
  role: string;
  cause: 'schedule' | 'person';
  /** Of the event with the report; null until there is one. */
  report_seq: number | null;
}
