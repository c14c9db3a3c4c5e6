/**
 * One step of the schema. Never change a released step; correct it in a new one. If versions without
 * the step must not use the database after it, list it in `contract-steps.ts`.
 */
export interface Migration {
  readonly name: string;
  readonly statements: readonly Statement[];
}

/** SQL for SQLite and PostgreSQL, or for only one of them. */
export type Statement = string | { readonly sqlite: string } | { readonly postgres: string };

/** The number of a migration is its position in this list, from 1. */
export const MIGRATIONS: readonly Migration[] = [
  {
    name: 'identity',
    statements: [
      `create table customers (
        customer_id text primary key,
        name text not null,
        created_at bigint not null
      )`,
      `create table plans (
        plan_id text primary key,
        name text not null,
        entitlements text not null,
        ttl_seconds bigint check (ttl_seconds > 0),
        grace_period_seconds bigint check (grace_period_seconds >= 0),
        created_at bigint not null
      )`,
      `create table contracts (
        contract_id text primary key,
        customer_id text not null references customers (customer_id),
        plan_id text not null references plans (plan_id),
        entitlements text not null,
        ttl_seconds bigint check (ttl_seconds > 0),
        grace_period_seconds bigint check (grace_period_seconds >= 0),
        ends_at bigint not null,
        created_at bigint not null
      )`,
      `create table deployments (
        deployment_id text primary key,
        contract_id text not null references contracts (contract_id),
        name text not null,
        created_at bigint not null,
        revoked_at bigint,
        revoked_by text,
        revoked_reason text
      )`,
      `create index contracts_customer on contracts (customer_id, contract_id)`,
      `create index deployments_contract on deployments (contract_id, deployment_id)`,
      `create table signing_keys (
        public_key_id text primary key,
        x text not null unique,
        status text not null check (status in ('active', 'retiring', 'retired')),
        activated_at bigint not null,
        retiring_at bigint,
        retired_at bigint
      )`,
      // Only one key can be active.
      `create unique index signing_keys_active on signing_keys (status) where status = 'active'`,
      `create table devices (
        device_id text primary key,
        deployment_id text not null references deployments (deployment_id),
        x text not null unique,
        name text not null,
        enrolled_at bigint not null,
        replaces text references devices (device_id),
        first_used_at bigint,
        revoked_at bigint,
        revoked_by text,
        revoked_reason text
      )`,
      `create index devices_deployment on devices (deployment_id)`,
      `create table license_leases (
        lease_id text primary key,
        deployment_id text not null references deployments (deployment_id),
        customer_id text not null references customers (customer_id),
        contract_id text not null references contracts (contract_id),
        lineage_id text not null,
        previous_lease_id text,
        renewal_id text,
        device_id text references devices (device_id),
        issued_by text not null,
        public_key_id text not null references signing_keys (public_key_id),
        entitlements text not null,
        issued_at bigint not null,
        expires_at bigint not null check (expires_at > issued_at),
        grace_ends_at bigint not null check (grace_ends_at >= expires_at),
        revoked_at bigint,
        revoked_by text,
        revoked_reason text
      )`,
      `create index license_leases_deployment on license_leases (deployment_id, expires_at)`,
      `create index license_leases_lineage on license_leases (lineage_id)`,
      `create index license_leases_device on license_leases (device_id, issued_at)`,
      `create index license_leases_previous on license_leases (previous_lease_id)`,
      `create index license_leases_key on license_leases (public_key_id, grace_ends_at)`,
      `create index license_leases_end on license_leases (grace_ends_at)`,
      `create index license_leases_revoked on license_leases (device_id)
        where revoked_at is not null`,
      `create table renewals (
        deployment_id text not null references deployments (deployment_id),
        renewal_id text not null,
        lease_id text not null references license_leases (lease_id),
        request_hash text not null,
        answer text,
        answered_at bigint not null,
        primary key (deployment_id, renewal_id)
      )`,
      `create index renewals_to_erase on renewals (answered_at) where answer is not null`,
      `create table enrolment_codes (
        code_hash text primary key,
        deployment_id text not null references deployments (deployment_id),
        created_by text not null,
        created_at bigint not null,
        expires_at bigint not null,
        used_at bigint,
        device_id text references devices (device_id)
      )`,
      `create table used_proofs (
        device_id text not null references devices (device_id),
        jti text not null,
        expires_at bigint not null,
        primary key (device_id, jti)
      )`,
      `create index used_proofs_expiry on used_proofs (expires_at)`,
      `create table server_secrets (
        name text primary key,
        value text not null
      )`,
      `create table administrators (
        administrator_id text primary key,
        name text not null unique,
        password_hash text not null,
        totp_secret text not null,
        totp_last_step bigint not null,
        created_at bigint not null,
        disabled_at bigint
      )`,
      `create table recovery_codes (
        code_hash text primary key,
        administrator_id text not null references administrators (administrator_id),
        used_at bigint
      )`,
      `create table failed_tries (
        subject text not null,
        failed_at bigint not null
      )`,
      `create index failed_tries_recent on failed_tries (subject, failed_at)`,
      `create index failed_tries_age on failed_tries (failed_at)`,
      `create table api_tokens (
        token_id text primary key,
        administrator_id text not null references administrators (administrator_id),
        label text not null,
        secret_hash text not null,
        scopes text not null,
        created_at bigint not null,
        expires_at bigint not null,
        revoked_at bigint
      )`,
      `create table step_ups (
        token_hash text primary key,
        administrator_id text not null references administrators (administrator_id),
        action text not null,
        target text not null,
        expires_at bigint not null,
        used_at bigint
      )`,
      `create table audit_entries (
        seq bigint primary key,
        recorded_at bigint not null,
        actor text not null,
        action text not null,
        target text not null,
        details text not null,
        prev_hash text not null,
        hash text not null
      )`,
      `create table audit_head (
        id bigint primary key check (id = 1),
        seq bigint not null,
        hash text not null
      )`,
      `insert into audit_head (id, seq, hash) values (1, 0, '${'0'.repeat(64)}')`,
    ],
  },
  {
    name: 'bots',
    statements: [
      `create table bots (
        bot_id text primary key,
        slug text not null unique,
        name text not null,
        kind text not null check (kind in ('trading', 'research')),
        status text not null check (status in ('draft', 'active', 'archived')),
        current_version bigint not null,
        created_at bigint not null,
        updated_at bigint not null,
        event_seq bigint not null,
        event_hash text not null
      )`,
      `create table bot_versions (
        bot_id text not null references bots (bot_id),
        version bigint not null check (version > 0),
        hash text not null,
        document text not null,
        created_at bigint not null,
        created_by text not null,
        primary key (bot_id, version)
      )`,
      // Without a foreign key, which PostgreSQL would check for each row: `append` reads the bot's
      // row anyway.
      `create table bot_events (
        bot_id text not null,
        seq bigint not null,
        event_id text not null,
        version bigint not null,
        run_id text,
        kind text not null,
        occurred_at bigint not null,
        recorded_at bigint not null,
        causation_id text,
        payload text not null,
        prev_hash text not null,
        hash text not null,
        primary key (bot_id, seq)
      )`,
      `create index bot_events_kind on bot_events (bot_id, kind, seq)`,
      `create table bot_snapshots (
        bot_id text not null references bots (bot_id),
        seq bigint not null check (seq > 0),
        state text not null,
        state_hash text not null,
        primary key (bot_id, seq)
      )`,
      `create table idempotency_keys (
        caller text not null,
        key text not null,
        request_hash text not null,
        body text not null,
        answered_at bigint not null,
        primary key (caller, key)
      )`,
      `create index idempotency_keys_age on idempotency_keys (answered_at)`,
    ],
  },
  {
    name: 'tasks',
    statements: [
      `create table bot_deployments (
        deployment_id text primary key,
        bot_id text not null references bots (bot_id),
        version bigint not null,
        target text not null check (target in ('backtest', 'paper', 'k8s')),
        status text not null
          check (status in ('pending', 'running', 'success', 'failed', 'halted')),
        task_id text not null unique,
        result_summary text,
        created_at bigint not null,
        ended_at bigint,
        foreign key (bot_id, version) references bot_versions (bot_id, version),
        check ((ended_at is null) = (status in ('pending', 'running')))
      )`,
      `create index bot_deployments_bot on bot_deployments (bot_id, deployment_id)`,
      `create table tasks (
        task_id text primary key,
        kind text not null check (kind in ('backtest')),
        bot_id text not null references bots (bot_id),
        version bigint not null,
        deployment_id text not null references bot_deployments (deployment_id),
        status text not null
          check (status in ('queued', 'running', 'success', 'failed', 'canceled')),
        input text not null,
        progress_done bigint not null check (progress_done >= 0),
        progress_total bigint,
        result text,
        error text,
        attempts bigint not null,
        worker_id text,
        heartbeat_at bigint,
        cancel_requested_at bigint,
        created_by text not null,
        created_at bigint not null,
        started_at bigint,
        ended_at bigint,
        check ((ended_at is null) = (status in ('queued', 'running'))),
        check ((worker_id is not null) = (status = 'running'))
      )`,
      `create index tasks_status on tasks (status, task_id)`,
      `create index tasks_bot on tasks (bot_id, task_id)`,
      `create index tasks_bot_status on tasks (bot_id, status, task_id)`,
      `create table task_files (
        task_id text not null references tasks (task_id),
        name text not null,
        place bigint not null,
        data text not null,
        primary key (task_id, name, place)
      )`,
    ],
  },
  {
    name: 'trading',
    statements: [
      // Without a check of the kind, which the code validates: later versions add kinds of tasks.
      `create table all_tasks (
        task_id text primary key,
        kind text not null,
        bot_id text not null references bots (bot_id),
        version bigint not null,
        deployment_id text not null references bot_deployments (deployment_id),
        status text not null
          check (status in ('queued', 'running', 'success', 'failed', 'canceled')),
        input text not null,
        progress_done bigint not null check (progress_done >= 0),
        progress_total bigint,
        result text,
        error text,
        attempts bigint not null,
        worker_id text,
        heartbeat_at bigint,
        cancel_requested_at bigint,
        created_by text not null,
        created_at bigint not null,
        started_at bigint,
        ended_at bigint,
        check ((ended_at is null) = (status in ('queued', 'running'))),
        check ((worker_id is not null) = (status = 'running'))
      )`,
      `insert into all_tasks select task_id, kind, bot_id, version, deployment_id, status, input,
        progress_done, progress_total, result, error, attempts, worker_id, heartbeat_at,
        cancel_requested_at, created_by, created_at, started_at, ended_at from tasks`,
      `create table all_task_files (
        task_id text not null references all_tasks (task_id),
        name text not null,
        place bigint not null,
        data text not null,
        primary key (task_id, name, place)
      )`,
      `insert into all_task_files select task_id, name, place, data from task_files`,
      `drop table task_files`,
      `drop table tasks`,
      `alter table all_tasks rename to tasks`,
      `alter table all_task_files rename to task_files`,
      `create index tasks_status on tasks (status, kind, task_id)`,
      `create index tasks_bot on tasks (bot_id, task_id)`,
      `create index tasks_bot_status on tasks (bot_id, status, task_id)`,
      `create index bot_deployments_active on bot_deployments (bot_id, deployment_id)
        where ended_at is null`,
      `create table trading_sessions (
        task_id text primary key references tasks (task_id),
        bot_id text not null references bots (bot_id),
        first_seq bigint not null,
        batches bigint not null check (batches >= 0),
        steps bigint not null check (steps >= 0),
        state text not null,
        failures bigint not null check (failures >= 0),
        stop_requested_at bigint,
        recorded_at bigint not null
      )`,
      `create index bot_events_runs on bot_events (run_id) where kind in ('run.queued', 'run.ended')`,
      `create index bot_events_bars on bot_events (run_id, seq) where kind = 'data.bars'`,
      // The state of a bot has new fields; snapshots are created again from the events.
      `delete from bot_snapshots`,
      `create table halts (
        halt_id text primary key,
        scope text not null check (scope in ('bot', 'all')),
        bot_id text references bots (bot_id),
        reason text not null,
        requested_by text not null,
        requested_at bigint not null,
        lifted_at bigint,
        lifted_by text,
        lift_reason text,
        check ((bot_id is null) = (scope = 'all')),
        check ((lifted_at is null) = (lifted_by is null))
      )`,
      `create index halts_in_force on halts (bot_id) where lifted_at is null`,
      `create table halted_deployments (
        halt_id text not null references halts (halt_id),
        deployment_id text not null references bot_deployments (deployment_id),
        orders text,
        first_seq bigint not null,
        last_seq bigint not null,
        primary key (halt_id, deployment_id)
      )`,
      `create table bundles (
        hash text primary key,
        files text not null,
        created_at bigint not null
      )`,
      `alter table bot_versions add column bundle_hash text references bundles (hash)`,
    ],
  },
  {
    name: 'console',
    statements: [
      `create table sessions (
        session_id text primary key,
        administrator_id text not null references administrators (administrator_id),
        secret_hash text not null unique,
        csrf_token text not null,
        signed_in_with text not null check (signed_in_with in ('password', 'passkey')),
        user_agent text not null,
        address text,
        created_at bigint not null,
        seen_at bigint not null,
        expires_at bigint not null
      )`,
      `create index sessions_administrator on sessions (administrator_id, session_id)`,
      `create table passkeys (
        passkey_id text primary key,
        administrator_id text not null references administrators (administrator_id),
        credential_id text not null unique,
        public_key text not null,
        counter bigint not null check (counter >= 0),
        transports text not null,
        site text not null,
        name text not null,
        created_at bigint not null,
        last_used_at bigint
      )`,
      `create index passkeys_administrator on passkeys (administrator_id, passkey_id)`,
      `create table challenges (
        challenge_hash text primary key,
        purpose text not null check (purpose in ('sign_in', 'step_up', 'add')),
        administrator_id text references administrators (administrator_id),
        action text,
        target text,
        expires_at bigint not null,
        check ((administrator_id is null) = (purpose = 'sign_in')),
        check ((action is not null and target is not null) = (purpose = 'step_up'))
      )`,
      `create index challenges_expiry on challenges (expires_at)`,
    ],
  },
  {
    name: 'licenses',
    statements: [
      // The newest lease of a deployment has the greatest id.
      `create index license_leases_newest on license_leases (deployment_id, lease_id)`,
      `create index audit_entries_target on audit_entries (target, seq)`,
      `create index audit_entries_actor on audit_entries (actor, seq)`,
      `create index audit_entries_action on audit_entries (action, seq)`,
    ],
  },
  {
    name: 'production',
    statements: [
      `create table production_deployments (
        deployment_id text primary key references bot_deployments (deployment_id),
        bot_id text not null references bots (bot_id),
        cluster text not null,
        namespace text not null,
        plan text not null,
        replaces text references bot_deployments (deployment_id),
        waits bigint not null check (waits in (0, 1)),
        opening text,
        begun_at bigint,
        token_applied_at bigint,
        applied_at bigint,
        scaled_down_at bigint,
        cluster_state text,
        check (waits = 0 or replaces is not null)
      )`,
      `create index production_deployments_bot on production_deployments (bot_id, deployment_id)`,
      `create index production_deployments_waiting on production_deployments (replaces)
        where waits = 1`,
      `create table runners (
        deployment_id text primary key references production_deployments (deployment_id),
        token_hash text not null,
        epoch bigint not null check (epoch >= 0),
        instance_id text,
        claimed_until bigint not null,
        reported_at bigint,
        report text,
        ended text,
        check ((epoch = 0) = (instance_id is null))
      )`,
    ],
  },
  {
    name: 'compliance',
    statements: [
      // The code never updates or deletes these rows: a frozen report never changes.
      `create table validation_reports (
        bot_id text not null references bots (bot_id),
        version bigint not null check (version > 0),
        year bigint not null,
        hash text not null,
        content_hash text not null,
        document text not null,
        frozen_at bigint not null,
        primary key (bot_id, version)
      )`,
    ],
  },
  {
    name: 'knowledge',
    statements: [
      `create table knowledge_documents (
        document_id text primary key,
        name text not null unique,
        title text not null,
        revision bigint not null check (revision > 0),
        sha256 text not null,
        bytes bigint not null,
        lines bigint not null,
        passages bigint not null,
        text text not null,
        added_at bigint not null,
        added_by text not null
      )`,
      // Without a foreign key: passages are added before their document, and removed after it.
      `create table knowledge_passages (
        number integer primary key,
        document_id text not null,
        ordinal bigint not null check (ordinal > 0),
        heading text not null,
        first_line bigint not null,
        last_line bigint not null,
        text text not null,
        terms text not null
      )`,
      `create index knowledge_passages_document on knowledge_passages (document_id, ordinal)`,
      `create table knowledge_unlisted (
        document_id text primary key,
        since bigint not null
      )`,
      {
        sqlite: `create virtual table knowledge_index using fts5 (
          terms,
          content = 'knowledge_passages',
          content_rowid = 'number',
          tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N*'"
        )`,
      },
      {
        sqlite: `create trigger knowledge_passages_added after insert on knowledge_passages begin
          insert into knowledge_index (rowid, terms) values (new.number, new.terms);
        end`,
      },
      {
        sqlite: `create trigger knowledge_passages_removed after delete on knowledge_passages begin
          insert into knowledge_index (knowledge_index, rowid, terms)
            values ('delete', old.number, old.terms);
        end`,
      },
      {
        postgres: `alter table knowledge_passages add column vector tsvector not null
          generated always as (to_tsvector('simple', terms)) stored`,
      },
      {
        postgres: `create index knowledge_passages_vector on knowledge_passages using gin (vector)`,
      },
    ],
  },
  {
    name: 'tests',
    statements: [
      // The target has no check any longer; SQLite can drop the check only together with the column.
      `alter table bot_deployments add column runs_on text not null default 'backtest'`,
      `update bot_deployments set runs_on = target`,
      `alter table bot_deployments drop column target`,
      `alter table bot_deployments rename column runs_on to target`,
    ],
  },
  {
    name: 'supervision',
    statements: [
      // The code never updates or deletes these rows, so the thresholds of any time can be shown.
      `create table thresholds (
        level text not null check (level in ('client', 'instrument', 'trader', 'desk', 'firm')),
        subject text not null,
        currency text not null,
        version bigint not null check (version > 0),
        limits text,
        rationale text not null,
        set_by text not null,
        set_at bigint not null,
        primary key (level, subject, currency, version)
      )`,
      `create table overrides (
        override_id text primary key,
        bot_id text not null references bots (bot_id),
        run_id text not null references tasks (task_id),
        symbol text not null,
        side text not null check (side in ('buy', 'sell')),
        max_quantity double precision not null,
        worst_price double precision,
        controls text not null,
        reason text not null,
        requested_by text not null,
        requested_at bigint not null,
        expires_at bigint not null,
        verified_by text,
        verified_at bigint,
        verify_reason text,
        authorised_by text,
        authorised_at bigint,
        authorise_reason text,
        used_at bigint,
        used_order bigint,
        check (authorised_by is null
          or (verified_by <> authorised_by and requested_by <> authorised_by)),
        check (verified_by is null or verified_by <> requested_by)
      )`,
      `create index overrides_bot on overrides (bot_id, override_id)`,
      `create index overrides_open on overrides (expires_at)
        where authorised_at is not null and used_at is null`,
      `alter table trading_sessions add column subjects text`,
      `alter table trading_sessions add column latches_lifted bigint not null default 0`,
    ],
  },
  {
    name: 'research',
    statements: [
      `create table chat_sessions (
        session_id text primary key,
        bot_id text not null references bots (bot_id),
        agent_role text,
        created_at bigint not null,
        created_by text not null
      )`,
      `create index chat_sessions_bot on chat_sessions (bot_id, session_id)`,
      // A turn is recorded before the provider is called, and ends once.
      `create table chat_turns (
        turn_id text primary key,
        session_id text not null references chat_sessions (session_id),
        number bigint not null check (number > 0),
        status text not null check (status in ('running', 'done', 'failed', 'interrupted')),
        prompt text not null,
        answer text not null,
        record text,
        provider text not null,
        model text,
        worker_id text not null,
        started_at bigint not null,
        deadline bigint not null,
        ended_at bigint,
        unique (session_id, number),
        check ((status = 'running') = (ended_at is null))
      )`,
    ],
  },
  {
    name: 'agents',
    statements: [
      // An active schedule has a next run; an inactive one has the time and reason of its end.
      `create table agent_schedules (
        bot_id text not null references bots (bot_id),
        role text not null,
        version bigint not null,
        every text not null,
        next_run_at bigint,
        administrator_id text not null references administrators (administrator_id),
        token_id text references api_tokens (token_id),
        scopes text not null,
        started_at bigint not null,
        stopped_at bigint,
        stopped_by text,
        stopped_reason text,
        primary key (bot_id, role),
        check ((stopped_at is null) = (next_run_at is not null))
      )`,
      `create index agent_schedules_due on agent_schedules (next_run_at)
        where next_run_at is not null`,
      `create table agent_runs (
        turn_id text primary key references chat_turns (turn_id),
        bot_id text not null references bots (bot_id),
        role text not null,
        cause text not null check (cause in ('schedule', 'person')),
        report_seq bigint
      )`,
      `create index agent_runs_bot on agent_runs (bot_id, role, turn_id)`,
      `create index agent_runs_open on agent_runs (turn_id) where report_seq is null`,
    ],
  },
  {
    name: 'database identity',
    statements: [
      `create table database_identity (
        id bigint primary key check (id = 1),
        database_id text not null,
        epoch bigint not null check (epoch > 0),
        place text,
        superseded_by bigint
      )`,
      {
        sqlite: `insert into database_identity (id, database_id, epoch)
          select 1, substr(hex, 1, 8) || '-' || substr(hex, 9, 4) || '-4' || substr(hex, 14, 3)
            || '-8' || substr(hex, 18, 3) || '-' || substr(hex, 21, 12), 1
          from (select lower(hex(randomblob(16))) as hex)`,
      },
      {
        postgres: `insert into database_identity (id, database_id, epoch)
          values (1, gen_random_uuid()::text, 1)`,
      },
    ],
  },
  {
    name: 'workers',
    statements: [
      `create table workers (
        worker_id text primary key,
        paper_sessions bigint not null,
        production_deployments bigint not null,
        heartbeat_at bigint not null
      )`,
    ],
  },
  {
    name: 'license root',
    statements: [
      `create table license_trust (
        id bigint primary key check (id = 1),
        roots text not null,
        keyset text not null,
        root_fingerprint text not null,
        root_version bigint not null,
        root_expires_at bigint not null,
        keyset_version bigint not null,
        keyset_expires_at bigint not null,
        stored_at bigint not null,
        stored_by text not null
      )`,
      `create table pending_signing_keys (
        public_key_id text primary key,
        x text not null,
        seen_at bigint not null
      )`,
    ],
  },
  {
    name: 'license endorsement',
    statements: [
      `create table license_endorsement (
        id bigint primary key check (id = 1),
        version bigint not null,
        keyset text not null
      )`,
    ],
  },
  {
    name: 'failed tries by network',
    statements: [
      `alter table failed_tries add column network text not null default ''`,
      `create table known_networks (
        administrator_id text not null references administrators (administrator_id),
        network text not null,
        seen_at bigint not null,
        primary key (administrator_id, network)
      )`,
    ],
  },
  {
    name: 'license use',
    statements: [
      `alter table plans add column product text`,
      `alter table plans add column binding text not null default 'none'
        check (binding in ('none', 'device', 'machine'))`,
      `alter table devices add column machine_hash text`,
    ],
  },
  {
    name: 'narrowed tokens',
    statements: [
      `alter table api_tokens add column deployment_ids text`,
      `alter table api_tokens add column customer_id text references customers (customer_id)`,
      `alter table api_tokens add column max_ttl_seconds bigint`,
    ],
  },
  {
    name: 'packed bars',
    statements: [
      `create table bot_numbers (
        bot_no integer primary key,
        bot_id text not null unique
      )`,
      // In PostgreSQL, columns of eight bytes come first, so that rows need no padding.
      {
        sqlite: `create table packed_bars (
          seq bigint not null,
          recorded_at bigint not null,
          bot_no integer not null,
          base integer not null,
          bars blob not null,
          hash blob not null,
          state text,
          primary key (bot_no, seq)
        ) without rowid`,
      },
      {
        postgres: `create table packed_bars (
          seq bigint not null,
          recorded_at bigint not null,
          bot_no integer not null,
          base integer not null,
          bars bytea not null,
          hash bytea not null,
          state text,
          primary key (bot_no, seq)
        )`,
      },
      {
        sqlite: `create table stored_bars (
          digest blob primary key,
          payload text not null
        ) without rowid`,
      },
      {
        postgres: `create table stored_bars (
          digest bytea primary key,
          payload text not null
        )`,
      },
    ],
  },
  {
    name: 'trial ledger',
    statements: [
      `create table trial_entries (
        seq bigint primary key,
        recorded_at bigint not null,
        kind text not null check (kind in ('trials', 'holdout_opened')),
        recorded_by text not null,
        lock_digest text not null,
        trial_key text not null,
        sharpe double precision,
        family text not null,
        symbols text not null,
        bar_ms bigint not null,
        window_from bigint not null,
        window_to bigint not null,
        prev_hash text not null,
        hash text not null,
        unique (lock_digest, trial_key)
      )`,
      `create index trial_entries_family on trial_entries (family, bar_ms)`,
      `create table trial_head (
        id bigint primary key check (id = 1),
        seq bigint not null,
        hash text not null
      )`,
      `insert into trial_head (id, seq, hash) values (1, 0, '${'0'.repeat(64)}')`,
    ],
  },
  {
    name: 'searches',
    statements: [
      `create table searches (
        search_id text primary key,
        digest text not null,
        title text not null,
        package text not null,
        created_by text not null,
        created_at bigint not null,
        used_at bigint not null,
        ended_count bigint not null,
        unique (digest, package, created_by)
      )`,
      `create table search_inputs (
        search_id text not null references searches (search_id),
        digest text not null,
        place bigint not null,
        parts bigint not null check (place < parts),
        data text not null,
        primary key (search_id, digest, place)
      )`,
      `create table search_shards (
        search_id text not null references searches (search_id),
        shard_id text not null,
        input_digest text not null,
        trials text not null,
        trial_count bigint not null,
        status text not null check (status in ('queued', 'running', 'success', 'failed')),
        attempts bigint not null,
        worker_id text,
        heartbeat_at bigint,
        created_at bigint not null,
        ended_no bigint,
        result text,
        error text,
        primary key (search_id, shard_id),
        check ((ended_no is null) = (status in ('queued', 'running'))),
        check ((worker_id is not null) = (status = 'running'))
      )`,
      `create index search_shards_status on search_shards (status, created_at)`,
      `create index search_shards_ended on search_shards (search_id, ended_no)`,
    ],
  },
  {
    name: 'versions',
    statements: [
      // For versions that do not know a migration: whether they may use the database after it.
      `alter table schema_migrations add column phase text`,
      `alter table schema_migrations add column version text`,
      `alter table workers add column version text`,
      `alter table tasks add column needs_level bigint not null default 1`,
      `alter table runners add column version text`,
    ],
  },
  {
    name: 'event archives',
    statements: [
      `create table bot_event_heads (
        bot_id text primary key references bots (bot_id),
        seq bigint not null check (seq > 0),
        hash text not null
      )`,
      `create table bot_event_archives (
        bot_id text not null references bots (bot_id),
        first_seq bigint not null,
        last_seq bigint not null check (last_seq >= first_seq),
        month text not null,
        prev_hash text not null,
        hash text not null,
        last_recorded_at bigint not null,
        state text not null,
        state_hash text not null,
        file text not null,
        file_bytes bigint not null,
        file_sha256 text not null,
        archived_at bigint not null,
        primary key (bot_id, first_seq)
      )`,
    ],
  },
  {
    name: 'trace context',
    statements: [`alter table tasks add column traceparent text`],
  },
  {
    name: 'size samples',
    statements: [
      `create table size_samples (
        name text not null,
        day bigint not null,
        bytes bigint not null,
        measured_at bigint not null,
        primary key (name, day)
      )`,
      `create index size_samples_time on size_samples (measured_at)`,
    ],
  },
  {
    name: 'trials of searches',
    statements: [`alter table trial_entries add column packed text`],
  },
  {
    name: 'alerts',
    statements: [
      `create index bot_events_alerts on bot_events (recorded_at, bot_id, seq) where kind = 'alert.raised'`,
    ],
  },
  {
    name: 'runs by figure',
    statements: ['total_return', 'sharpe', 'max_drawdown'].flatMap((figure) => [
      {
        sqlite: `create index bot_deployments_${figure} on bot_deployments
          (json_extract(result_summary, '$.metrics.${figure}') desc, task_id desc)`,
      },
      {
        postgres: `create index bot_deployments_${figure} on bot_deployments
          (((result_summary::json #>> '{metrics,${figure}}')::double precision) desc nulls last,
            task_id desc)`,
      },
    ]),
  },
  {
    name: 'validation drafts',
    statements: [
      `create table validation_drafts (
        bot_id text not null references bots (bot_id),
        year bigint not null,
        revision bigint not null check (revision > 0),
        answers text not null,
        standing text not null,
        saved_at bigint not null,
        saved_by text not null,
        primary key (bot_id, year)
      )`,
    ],
  },
  {
    name: 'notifications',
    statements: [
      // Without a check of the condition, which the code validates: later versions add conditions.
      `create table notification_rules (
        rule_id text primary key,
        name text not null unique,
        condition text not null,
        amount double precision,
        bot_ids text,
        channel text not null,
        created_by text not null,
        created_at bigint not null
      )`,
      // Without a foreign key: the deliveries of a removed rule stay until they are purged.
      `create table notification_deliveries (
        delivery_id text primary key,
        rule_id text,
        rule_name text not null,
        occurrence text not null,
        channel text not null,
        notice text not null,
        status text not null check (status in ('pending', 'sent', 'failed', 'grouped')),
        attempts bigint not null,
        next_attempt_at bigint,
        error text,
        created_at bigint not null,
        ended_at bigint,
        unique (rule_id, occurrence),
        check ((status = 'pending') = (next_attempt_at is not null)),
        check ((status = 'pending') = (ended_at is null))
      )`,
      `create index notification_deliveries_due on notification_deliveries (channel, next_attempt_at)
        where next_attempt_at is not null`,
      `create index notification_deliveries_ended on notification_deliveries (ended_at)
        where ended_at is not null`,
      `create table notification_scan (
        id bigint primary key check (id = 1),
        scanned_until bigint not null
      )`,
    ],
  },
  {
    name: 'traces of searches',
    statements: [`alter table searches add column traceparent text`],
  },
  {
    name: 'halted deployments without foreign keys',
    statements: [
      // A halt of all bots would check them for each row. The rows are read in the same transaction.
      {
        postgres: `alter table halted_deployments
          drop constraint halted_deployments_halt_id_fkey,
          drop constraint halted_deployments_deployment_id_fkey`,
      },
    ],
  },
  {
    name: 'listed halts',
    // The order of `listHalts`, which every page of the console reads.
    statements: [
      `create index halts_listed on halts
        ((case when lifted_at is null then 0 else 1 end), halt_id desc)`,
    ],
  },
  {
    name: 'authorized overrides',
    statements: [
      `alter table overrides rename column authorised_by to authorized_by`,
      `alter table overrides rename column authorised_at to authorized_at`,
      `alter table overrides rename column authorise_reason to authorize_reason`,
    ],
  },
  {
    name: 'ends of failed tasks',
    // Notification rules with the condition `error` read the newest failed tasks every second.
    statements: [`create index tasks_failed on tasks (kind, ended_at) where status = 'failed'`],
  },
  {
    name: 'unsaved files of backtests',
    statements: [
      `create table unsaved_bundles (
        task_id text primary key references tasks (task_id),
        bundle_hash text not null references bundles (hash)
      )`,
      `create index unsaved_bundles_by_hash on unsaved_bundles (bundle_hash)`,
      `create index bot_versions_by_bundle on bot_versions (bundle_hash)
        where bundle_hash is not null`,
    ],
  },
  {
    name: 'halts of bots',
    // Lists of tasks read the halts that ended their sessions.
    statements: [`create index halts_bot on halts (bot_id)`],
  },
  {
    name: 'unused indexes',
    statements: [
      // `license_leases_newest` finds the leases of an installation, too.
      `drop index license_leases_deployment`,
      // Bars are packed, and are read by bot.
      `drop index bot_events_bars`,
    ],
  },
];
