import canonicalize from 'canonicalize';
import { ServiceError } from '../../base/errors.ts';
import { ATTESTING_ROLES } from '../../base/validation-report-fields.ts';
import { listOpenItems } from '../../base/validation-report-status.ts';
import { getBotId } from '../../fleet/registry/bots.ts';
import { appendAudit } from '../../identity/audit.ts';
import { consumeStepUp } from '../../identity/step-up.ts';
import type { Db, ValidationReportsTable } from '../../storage/tables.ts';
import { digest } from '../evidence-digest.ts';
import { deriveReport } from './derive.ts';
import { readDraft } from './answers.ts';
import { readAuthor, type Author } from './author.ts';
import { readFilled, storeAnswers } from './draft.ts';
import { enterAnswers } from './fill.ts';
import { findNewest, getRow, selectVersions } from './frozen-rows.ts';
import type { ReportService } from './records.ts';
import { withHashes } from './report-fields.ts';
import type { Attesting, Freezing, Report } from './validation-report.ts';

export interface FrozenReport {
  readonly report: Report;
  /** SHA-256, in hex, of the report in canonical JSON (RFC 8785). */
  readonly hash: string;
}

/** Step-up action for attesting; the target is `validation_report:` followed by the `content_hash`. */
const ATTEST_ACTION = 'bots.validation_report.attest';

/**
 * Drafts the report again, fills in the values of people, and stores it as the next version.
 *
 * @throws ServiceError `not_found`; `invalid_request`; `overloaded`; `conflict` with the reason
 * `superseded` if another version of the year is the newest, or `edited` if the answers have another revision.
 */
export async function freezeReport(
  service: ReportService,
  administrator_id: string,
  ref: string,
  request: Freezing,
): Promise<FrozenReport> {
  const derived = await deriveReport(service, ref, request.year);
  const { scope, period } = derived;
  return service.storage.write(async (tx) => {
    const author = await readAuthor(tx, service.clock(), administrator_id);
    const before = await findNewest(tx, scope.bot_id, period.year);
    requireNewest(before, request.supersedes ?? null);
    const { report: draft, saved } = await readFilled(tx, derived);
    requireRevision(saved.revision, request.revision);
    const filled = enterAnswers(draft, request, author);
    const report = withHashes({ ...filled, status: 'frozen' });
    const details = { filled: Object.keys(request.human ?? {}).length };
    const action = 'bots.validation_report.freeze';
    const stored = await storeVersion(tx, report, before, author, action, details);
    const { version } = stored.report.number!;
    const frozen = { version, status: 'frozen', revision: saved.revision + 1 } as const;
    await storeAnswers(tx, saved, request, report, author, frozen);
    return stored;
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
  { attest: role, version, content_hash }: Attesting,
  stepUp: string | undefined,
): Promise<FrozenReport> {
  return storage.write(async (tx) => {
    const author = await readAuthor(tx, clock(), administrator_id);
    const { now, name, at } = author;
    const row = await getRow(tx, ref, version);
    requireNewest(await findNewest(tx, row.bot_id, row.year), version);
    if (row.content_hash !== content_hash) {
      throw new ServiceError('conflict', `version ${version} has a different content_hash`, {
        reason: 'other_content',
        remedy: `Read version ${version} and attest its content_hash.`,
      });
    }
    const report = JSON.parse(row.document) as Report;
    requireNewAttester(report, role, administrator_id);
    const target = `validation_report:${content_hash}`;
    await consumeStepUp(tx, now, administrator_id, stepUp, ATTEST_ACTION, target);
    const attestation = { administrator_id, name, at, content_hash };
    const attestations = { ...report.attestations, [role]: attestation };
    const signed = isSigned(attestations)
      ? { status: 'signed' as const, signed_with_open: listOpenItems(report) }
      : { status: 'frozen' as const };
    const attested = { ...report, ...signed, attestations };
    const stored = await storeVersion(tx, attested, row, author, ATTEST_ACTION, { role });
    await noteAttested(tx, row, stored.report);
    return stored;
  });
}

/** @throws ServiceError `not_found` for the bot or the version. */
export async function getFrozenReport(db: Db, ref: string, version: number): Promise<FrozenReport> {
  const { document, hash } = await getRow(db, ref, version);
  return { report: JSON.parse(document) as Report, hash };
}

/** Records the newest version and its status with the saved answers, which stay as they are. */
async function noteAttested(
  tx: Db,
  { bot_id, year }: ValidationReportsTable,
  { number, status }: Report,
): Promise<void> {
  const { standing } = await readDraft(tx, bot_id, year);
  // Without saved answers, the report over all bots reads the frozen version.
  if (standing === null || standing.frozen === null) return;
  const frozen = { ...standing.frozen, version: number!.version, status };
  await tx
    .updateTable('validation_drafts')
    .set({ standing: JSON.stringify({ ...standing, frozen }) })
    .where('bot_id', '=', bot_id)
    .where('year', '=', year)
    .execute();
}

/** Lists all versions of a bot, newest first. @throws ServiceError `not_found` for the bot. */
export async function listFrozenVersions(db: Db, ref: string) {
  const rows = await selectVersions(db, await getBotId(db, ref)).execute();
  return rows.map(({ bot_id: _bot, document, ...row }) => {
    const report = JSON.parse(document) as Report;
    const { status } = report;
    const signed_with_open = status === 'signed' ? listOpenItems(report) : [];
    return { ...row, status, signed_with_open, attested: listAttestedRoles(report) };
  });
}

function listAttestedRoles({ attestations }: Report) {
  return ATTESTING_ROLES.filter((role) => attestations[role] !== null);
}

/** Whether all roles of Article 9 have attested; a reason for the lack of an internal audit is enough. */
function isSigned({
  internal_audit_9_3: audit,
  internal_audit_absent_reason: absent,
  ...others
}: Report['attestations']): boolean {
  const isAudited = audit !== null || absent.value !== null;
  return isAudited && Object.values(others).every((one) => one !== null);
}

async function storeVersion(
  tx: Db,
  content: Report,
  before: ValidationReportsTable | undefined,
  { now, at, by, actor }: Author,
  action: string,
  more: Readonly<Record<string, unknown>>,
): Promise<FrozenReport> {
  const { content_hash, period, scope } = content;
  const { bot_id } = scope;
  const last = await selectVersions(tx, bot_id).limit(1).executeTakeFirst();
  const version = (last?.version ?? 0) + 1;
  const supersedes = before
    ? {
        version: before.version,
        hash: before.hash,
        attested: listAttestedRoles(JSON.parse(before.document) as Report),
      }
    : null;
  const report = { ...content, number: { version, supersedes, frozen_at: at, frozen_by: by } };
  const hash = digest(report);
  const details = { version, supersedes, hash, content_hash, ...more };
  await appendAudit(tx, now, { actor, action, target: `bot:${bot_id}`, details });
  const row = { bot_id, version, year: period.year, hash, content_hash, frozen_at: now };
  await tx
    .insertInto('validation_reports')
    .values({ ...row, document: canonicalize(report)! })
    .execute();
  return { report, hash };
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

function requireRevision(newest: number, expected: number | undefined): void {
  if (expected === undefined || expected === newest) return;
  throw new ServiceError('conflict', `the saved answers have revision ${newest}, not ${expected}`, {
    reason: 'edited',
    remedy: 'Read the draft again, then freeze it with its revision.',
  });
}

function requireNewAttester(
  { attestations }: Report,
  role: Attesting['attest'],
  administrator_id: string,
): void {
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
