/** The report over all bots, from what each bot's last save or freeze stated. */
import type { FirmReport } from '../../api/validation-drafts.ts';
import { ASSESSMENTS } from '../../base/validation-report-fields.ts';
import type { Db } from '../../storage/tables.ts';
import { ARTICLES } from '../articles.ts';
import { describeStanding, parseStanding, type Standing } from './answers.ts';
import { findNewest } from './frozen-rows.ts';
import { formatInstant, formatInstantOrNull, periodOf } from './period.ts';
import type { ReportService } from './records.ts';
import type { Report } from './validation-report.ts';

const NOTICE =
  'An overview of the validation reports of all trading bots, for the yearly self-assessment of a firm under Article 9 of RTS 6 (Commission Delegated Regulation (EU) 2017/589). It is not a statement of compliance: only people can assess a paragraph. What it states about a bot is as of the last save or freeze of its report.';

const BOTS_AT_ONCE = 200;
const MOST_LISTED = 1000;

const PARAGRAPHS = ARTICLES.filter(
  ({ instrument, ref }) => instrument === 'RTS 6' && !ref.startsWith('I'),
);

type Bot = FirmReport['bots']['items'][number];
type Counts = Bot['assessments'];
type FirmGap = FirmReport['gaps']['items'][number];
type FirmDeficiency = FirmReport['deficiencies']['items'][number];

/** A bot and the state of its report; `standing` is null before the first save. */
interface Reported {
  readonly bot_id: string;
  readonly slug: string;
  readonly name: string;
  readonly revision: number;
  readonly saved_at: number | null;
  readonly saved_by: string | null;
  readonly standing: Standing | null;
}

/** @throws ServiceError `invalid_request` for a year that has not begun. */
export async function composeFirmReport(
  { storage, clock }: ReportService,
  asked: number | undefined,
): Promise<FirmReport> {
  const now = clock();
  const { year, to } = periodOf(asked, now);
  const today = formatInstant(now).slice(0, 10);
  const bots: Bot[] = [];
  const gaps: FirmGap[] = [];
  const deficiencies: FirmDeficiency[] = [];
  const statuses = { not_begun: 0, draft: 0, frozen: 0, signed: 0 };
  const paragraphs = new Map(PARAGRAPHS.map(({ ref }) => [ref, noCounts()]));
  for await (const one of readReported(storage.read, year, to)) {
    const bot = describeBot(one, today);
    bots.push(bot);
    statuses[bot.status] += 1;
    for (const [ref, counts] of paragraphs) {
      counts[one.standing?.assessments[ref] ?? 'not_assessed'] += 1;
    }
    const names = { bot_slug: one.slug, bot_name: one.name };
    for (const gap of one.standing?.gaps ?? []) {
      gaps.push({
        ...names,
        ...gap,
        articles: [...gap.articles],
        overdue: isBefore(gap.due, today),
      });
    }
    for (const found of one.standing?.deficiencies ?? []) {
      deficiencies.push({ ...names, ...found, overdue: isOverdue(found, today) });
    }
  }
  return {
    schema: 'rts6-firm/1',
    notice: NOTICE,
    year,
    as_of: formatInstant(now),
    bots: cut(bots),
    statuses,
    paragraphs: PARAGRAPHS.map(({ ref, requirement }) => ({
      id: ref,
      requirement,
      assessments: paragraphs.get(ref)!,
    })),
    gaps: cut(gaps.toSorted((a, b) => compare(a.due ?? '~', b.due ?? '~'))),
    deficiencies: cut(deficiencies.toSorted((a, b) => compare(rank(a), rank(b)))),
  };
}

/** Reads trading bots by slug: those that are not archived, and those with a report of the year. */
async function* readReported(db: Db, year: number, to: number): AsyncGenerator<Reported> {
  let after = '';
  for (;;) {
    const rows = await db
      .selectFrom('bots')
      .leftJoin('validation_drafts as draft', (join) =>
        join.onRef('draft.bot_id', '=', 'bots.bot_id').on('draft.year', '=', year),
      )
      .select(['bots.bot_id', 'slug', 'name', 'status', 'revision', 'saved_at', 'saved_by'])
      .select('standing')
      .where('kind', '=', 'trading')
      .where('created_at', '<', to)
      .where('slug', '>', after)
      .orderBy('slug')
      .limit(BOTS_AT_ONCE)
      .execute();
    for (const { status, standing, revision, ...row } of rows) {
      const saved = standing === null ? undefined : parseStanding({ standing });
      const known = saved ?? (await readFrozen(db, row.bot_id, year));
      if (known === null && status === 'archived') continue;
      yield { ...row, revision: revision ?? 0, standing: known };
    }
    if (rows.length < BOTS_AT_ONCE) return;
    after = rows.at(-1)!.slug;
  }
}

/** Reads the standing of a report that was frozen before answers were saved separately. */
async function readFrozen(db: Db, bot_id: string, year: number): Promise<Standing | null> {
  const row = await findNewest(db, bot_id, year);
  if (row === undefined) return null;
  const report = JSON.parse(row.document) as Report;
  const { version } = row;
  return describeStanding(report, { version, status: report.status, revision: 0 });
}

function describeBot(reported: Reported, today: string): Bot {
  const { bot_id, slug, name, standing, revision, saved_at, saved_by } = reported;
  const frozen = standing?.frozen ?? null;
  const assessments = noCounts();
  for (const { ref } of PARAGRAPHS) {
    assessments[standing?.assessments[ref] ?? 'not_assessed'] += 1;
  }
  return {
    bot_id,
    bot_slug: slug,
    bot_name: name,
    status: frozen?.status ?? (standing === null ? 'not_begun' : 'draft'),
    version: frozen?.version ?? null,
    edited: frozen !== null && revision > frozen.revision,
    saved_at: formatInstantOrNull(saved_at),
    saved_by,
    assessments,
    gaps: standing && {
      total: standing.gaps.length,
      unassigned: standing.gaps.filter(({ owner, due }) => owner === null || due === null).length,
      overdue: standing.gaps.filter(({ due }) => isBefore(due, today)).length,
    },
    open_deficiencies: (standing?.deficiencies ?? []).filter(({ closed }) => closed === null)
      .length,
  };
}

function noCounts(): Counts {
  return Object.fromEntries(ASSESSMENTS.map((name) => [name, 0])) as Counts;
}

function isBefore(due: string | null, today: string): boolean {
  return due !== null && due < today;
}

function isOverdue(
  { closed, due }: Pick<FirmDeficiency, 'closed' | 'due'>,
  today: string,
): boolean {
  return closed === null && due < today;
}

/** Orders open deficiencies before closed ones, each by due date. */
function rank({ closed, due }: FirmDeficiency): string {
  return `${closed === null ? 0 : 1}${due}`;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function cut<T>(all: readonly T[]): { total: number; items: T[] } {
  return { total: all.length, items: all.slice(0, MOST_LISTED) };
}
