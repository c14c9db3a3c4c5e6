/** The draft of a validation report with the answers that people have saved. */
import { appendAudit } from '../../identity/audit.ts';
import type { Db } from '../../storage/tables.ts';
import {
  addAnswers,
  describeStanding,
  readDraft,
  requireUnchanged,
  storeDraft,
  type SavedDraft,
  type Standing,
} from './answers.ts';
import { readAuthor, type Author } from './author.ts';
import { deriveReport } from './derive.ts';
import { enterAnswers, fillKept } from './fill.ts';
import { findNewest } from './frozen-rows.ts';
import type { ReportService } from './records.ts';
import { withHashes } from './report-fields.ts';
import type { Report, Saving } from './validation-report.ts';

export interface DraftedReport {
  readonly report: Report;
  /** Number of the last save; 0 before the first. */
  readonly revision: number;
}

/** Drafts the report of a bot with the saved answers. @throws ServiceError as `deriveReport`. */
export async function draftReport(
  service: ReportService,
  ref: string,
  year: number | undefined,
): Promise<DraftedReport> {
  const derived = await deriveReport(service, ref, year);
  const { report, saved } = await readFilled(service.storage.read, derived);
  return { report: withHashes(report), revision: saved.revision };
}

/**
 * Saves answers of a person, and drafts the report again with them.
 *
 * @throws ServiceError as `deriveReport`; `invalid_request`; `conflict` with the reason `edited`.
 */
export async function saveAnswers(
  service: ReportService,
  administrator_id: string,
  ref: string,
  request: Saving,
): Promise<DraftedReport> {
  const derived = await deriveReport(service, ref, request.year);
  return service.storage.write(async (tx) => {
    const author = await readAuthor(tx, service.clock(), administrator_id);
    const { report: before, saved } = await readFilled(tx, derived);
    requireUnchanged(saved, request);
    const report = withHashes(enterAnswers(before, request, author));
    const frozen = saved.standing?.frozen ?? null;
    const revision = await storeAnswers(tx, saved, request, report, author, frozen);
    const { bot_id } = report.scope;
    const places = Object.keys(request.human ?? {});
    const { year } = report.period;
    await appendAudit(tx, author.now, {
      actor: author.actor,
      action: 'bots.validation_report.save',
      target: `bot:${bot_id}`,
      details: {
        year,
        revision,
        places: places.slice(0, MOST_AUDITED),
        total: places.length,
        ...(request.deficiencies && { deficiencies: request.deficiencies.length }),
      },
    });
    return { report, revision };
  });
}

/** Number of changed fields that the audit log names. */
const MOST_AUDITED = 100;

/** Fills a derived report with all that people have entered so far. */
export async function readFilled(
  db: Db,
  derived: Report,
): Promise<{ readonly report: Report; readonly saved: SavedDraft }> {
  const { scope, period } = derived;
  const saved = await readDraft(db, scope.bot_id, period.year);
  const newest = await findNewest(db, scope.bot_id, period.year);
  const former = newest && (JSON.parse(newest.document) as Report);
  return { report: fillKept(derived, former, saved.answers), saved };
}

/** Stores the answers of a request as the next revision, and returns its number. */
export async function storeAnswers(
  tx: Db,
  saved: SavedDraft,
  request: Pick<Saving, 'human' | 'deficiencies'>,
  report: Report,
  author: Author,
  frozen: Standing['frozen'],
): Promise<number> {
  const revision = saved.revision + 1;
  await storeDraft(tx, {
    bot_id: report.scope.bot_id,
    year: report.period.year,
    revision,
    answers: addAnswers(saved, request, report, author),
    standing: describeStanding(report, frozen),
    saved_at: author.now,
    saved_by: author.by,
  });
  return revision;
}
