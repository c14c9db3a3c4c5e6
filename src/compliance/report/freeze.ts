import canonicalize from 'canonicalize';
import { getBotId } from '../../fleet/registry/bots.ts';
import { ServiceError } from '../../base/errors.ts';
import { appendAudit } from '../../identity/audit.ts';
import { consumeStepUp } from '../../identity/step-up.ts';
import { listOpenItems } from '../../base/validation-report-status.ts';
import type { Db, ValidationReportsTable } from '../../storage/tables.ts';
import { digest } from '../evidence-digest.ts';
import { deriveReport } from './derive.ts';
import { withHashes } from './hashes.ts';
import type { ReportService } from './records.ts';
import { fillReport, type Filling } from './fill.ts';
import type { Attestation, Deficiency, Report, Role } from './validation-report.ts';
import { formatInstant } from './period.ts';

export interface FrozenReport {
  readonly report: Report;
  /** SHA-256, in hex, of the report in canonical JSON (RFC 8785). */
  readonly hash: string;
}

export interface FreezeRequest {
  /** The current year by default. */
  readonly year?: number | undefined;
  /** The newest version of the year; null before the first one. */
  readonly supersedes?: number | null | undefined;
  readonly human?: Filling | undefined;
  /** Replaces all deficiencies; by default the previous version's are kept. */
  readonly deficiencies?: readonly Omit<Deficiency, 'id'>[] | undefined;
}

export interface AttestRequest {
  readonly attest: Role;
  /** The newest version of its year. */
  readonly version: number;
  /** Content that the caller has read; the step-up must name it. */
  readonly content_hash: string;
}

/** Step-up action for attesting; the target is `validation_report:` followed by the `content_hash`. */
const ATTEST_ACTION = 'bots.validation_report.attest';

/**
 * Drafts the report again, fills in the values of people, and stores it as the next version.
 *
 * @throws ServiceError `not_found`; `invalid_request`; `overloaded`; `conflict` with the reason
 * `superseded` if another version of the year is the newest.
 */
export async function freezeReport(
  service: ReportService,
  administrator_id: string,
  ref: string,
  { year, supersedes = null, human = {}, deficiencies }: FreezeRequest,
): Promise<FrozenReport> {
  const derived = await deriveReport(service, ref, year);
  const { bot_id } = derived.scope;
  return service.storage.write(async (tx) => {
    const now = service.clock();
    const before = await findNewest(tx, bot_id, derived.period.year);
    requireNewest(before, supersedes);
    const former = before && (JSON.parse(before.document) as Report);
    const by = `${await getName(tx, administrator_id)} (administrator:${administrator_id})`;
    const filled = fillReport(derived, former, human, deficiencies, by, formatInstant(now));
    return storeVersion(tx, withHashes({ ...filled, status: 'frozen' }), before, by, {
      now,
      administrator_id,
      action: 'bots.validation_report.freeze',
      details: { filled: Object.keys(human).length },
    });
  });
}

/**
 * Stores the next version of a report, which differs only by the attestation of the caller.
 *
 * @throws ServiceError `not_found`; `step_up_required`; `conflict` with the reason `superseded`,
 * `other_content`, `attested` if another person has attested in the role, or `same_person`.
 */
export async function attestReport(
  { storage, clock }: ReportService,
  administrator_id: string,
  ref: string,
  { attest, version, content_hash }: AttestRequest,
  stepUp: string | undefined,
): Promise<FrozenReport> {
  return storage.write(async (tx) => {
    const now = clock();
    const row = await getRow(tx, ref, version);
    const newest = await findNewest(tx, row.bot_id, row.year);
    requireNewest(newest, version);
    if (row.content_hash !== content_hash) {
      throw new ServiceError('conflict', `version ${version} has a different content_hash`, {
        reason: 'other_content',
        remedy: `Read version ${version} and attest its content_hash.`,
      });
    }
    const report = JSON.parse(row.document) as Report;
    requireNewAttester(report, attest, administrator_id);
    await consumeStepUp(
      tx,
      now,
      administrator_id,
      stepUp,
      ATTEST_ACTION,
      `validation_report:${content_hash}`,
    );
    const name = await getName(tx, administrator_id);
    const attestation: Attestation = {
      administrator_id,
      name,
      at: formatInstant(now),
      content_hash,
    };
    const attestations = { ...report.attestations, [attest]: attestation };
    const signed = isSigned(attestations)
      ? { status: 'signed' as const, signed_with_open: listOpenItems(report) }
      : { status: 'frozen' as const };
    const by = `${name} (administrator:${administrator_id})`;
    return storeVersion(tx, { ...report, ...signed, attestations }, row, by, {
      now,
      administrator_id,
      action: ATTEST_ACTION,
      details: { role: attest },
    });
  });
}

/** @throws ServiceError `not_found` for the bot or the version. */
export async function getFrozenReport(db: Db, ref: string, version: number): Promise<FrozenReport> {
  const { document, hash } = await getRow(db, ref, version);
  return { report: JSON.parse(document) as Report, hash };
}

export type FrozenVersion = Pick<
  ValidationReportsTable,
  'version' | 'year' | 'hash' | 'content_hash' | 'frozen_at'
> &
  Pick<Report, 'status'> & {
    /** See `listOpenItems`; empty unless the report is signed. */
    readonly signed_with_open: readonly string[];
  };

/** Lists all versions of a bot, newest first. @throws ServiceError `not_found` for the bot. */
export async function listFrozenVersions(db: Db, ref: string): Promise<FrozenVersion[]> {
  const rows = await db
    .selectFrom('validation_reports')
    .selectAll()
    .where('bot_id', '=', await getBotId(db, ref))
    .orderBy('version', 'desc')
    .execute();
  return rows.map(({ bot_id: _bot, document, ...row }) => {
    const report = JSON.parse(document) as Report;
    const { status } = report;
    return { ...row, status, signed_with_open: status === 'signed' ? listOpenItems(report) : [] };
  });
}

/** Whether all roles of Article 9 have attested; a reason for the lack of an internal audit is enough. */
function isSigned({
  risk_management_9_2: risk,
  technical_staff_involved_9_2: technical,
  internal_audit_9_3: audit,
  internal_audit_absent_reason: absent,
  senior_management_9_3: management,
}: Report['attestations']): boolean {
  const isAudited = audit !== null || absent.value !== null;
  return risk !== null && technical !== null && management !== null && isAudited;
}

async function storeVersion(
  tx: Db,
  content: Report,
  before: ValidationReportsTable | undefined,
  frozen_by: string,
  {
    now,
    administrator_id,
    action,
    details,
  }: {
    readonly now: number;
    readonly administrator_id: string;
    readonly action: string;
    readonly details: Readonly<Record<string, unknown>>;
  },
): Promise<FrozenReport> {
  const {
    scope: { bot_id },
    content_hash,
  } = content;
  const { last } = await tx
    .selectFrom('validation_reports')
    .select(({ fn }) => fn.max('version').as('last'))
    .where('bot_id', '=', bot_id)
    .executeTakeFirstOrThrow();
  const version = (last ?? 0) + 1;
  const supersedes = before ? { version: before.version, hash: before.hash } : null;
  const number = { version, supersedes, frozen_at: formatInstant(now), frozen_by };
  const report: Report = { ...content, number };
  const hash = digest(report);
  await appendAudit(tx, now, {
    actor: `administrator:${administrator_id}`,
    action,
    target: `bot:${bot_id}`,
    details: { version, supersedes, hash, content_hash, ...details },
  });
  const row = { bot_id, version, year: report.period.year, hash, content_hash, frozen_at: now };
  await tx
    .insertInto('validation_reports')
    .values({ ...row, document: canonicalize(report)! })
    .execute();
  return { report, hash };
}

async function getRow(db: Db, ref: string, version: number): Promise<ValidationReportsTable> {
  const bot_id = await getBotId(db, ref);
  const row = await db
    .selectFrom('validation_reports')
    .selectAll()
    .where('bot_id', '=', bot_id)
    .where('version', '=', version)
    .executeTakeFirst();
  if (row !== undefined) return row;
  throw new ServiceError(
    'not_found',
    `bot ${ref} has no validation report with version ${version}`,
    {
      remedy: `List the versions with \`service-local bots validation-report list ${ref}\`.`,
    },
  );
}

async function findNewest(
  db: Db,
  bot_id: string,
  year: number,
): Promise<ValidationReportsTable | undefined> {
  return db
    .selectFrom('validation_reports')
    .selectAll()
    .where('bot_id', '=', bot_id)
    .where('year', '=', year)
    .orderBy('version', 'desc')
    .limit(1)
    .executeTakeFirst();
}

function requireNewest(newest: ValidationReportsTable | undefined, expected: number | null): void {
  const version = newest?.version ?? null;
  if (version === expected) return;
  const message =
    version === null
      ? 'no version of the validation report has been frozen for the year'
      : `the newest version of the validation report is ${version}`;
  throw new ServiceError('conflict', message, {
    reason: 'superseded',
    remedy:
      version === null
        ? 'Freeze the first version without `--supersedes` (`supersedes` in the request).'
        : `Read version ${version}, then pass \`--supersedes ${version}\` to freeze or \`--version ${version}\` to attest.`,
  });
}

function requireNewAttester({ attestations }: Report, role: Role, administrator_id: string): void {
  const { internal_audit_absent_reason: _reason, ...all } = attestations;
  if (all[role] !== null) {
    throw new ServiceError('conflict', `${all[role].name} has already attested as ${role}`, {
      reason: 'attested',
      remedy:
        'To replace the attestation, freeze a new version, which all roles must attest again.',
    });
  }
  const other = Object.entries(all).find(([, one]) => one?.administrator_id === administrator_id);
  if (other === undefined) return;
  throw new ServiceError('conflict', `you have already attested as ${other[0]}`, {
    reason: 'same_person',
    remedy: 'Have another person attest: each role needs a different person.',
  });
}

async function getName(tx: Db, administrator_id: string): Promise<string> {
  const { name } = await tx
    .selectFrom('administrators')
    .select('name')
    .where('administrator_id', '=', administrator_id)
    .executeTakeFirstOrThrow();
  return name;
}
