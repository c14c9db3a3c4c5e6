/** Saved answers of people for the validation report of a bot in a year. */
import { ServiceError, type Problem } from '../../base/errors.ts';
import { toAnswerPointer } from '../../base/validation-report-fields.ts';
import type { Db, ValidationDraftsTable } from '../../storage/tables.ts';
import { isDeepStrictEqual } from 'node:util';
import type { Human, Report, Saving } from './validation-report.ts';

/** A value and the save that it comes from. */
interface Answer extends Pick<Human, 'value' | 'by' | 'at'> {
  readonly revision: number;
}

export interface Answers {
  /** Answers by path of the field. */
  readonly human: Readonly<Record<string, Answer>>;
  /** Null until somebody saves the list. */
  readonly deficiencies:
    | (Omit<Answer, 'value'> & { readonly items: Report['deficiencies'] })
    | null;
}

/** The facts that the report over all bots shows for one bot. */
export interface Standing {
  /** Newest frozen version, and the revision of the draft that it contains. */
  readonly frozen: {
    readonly version: number;
    readonly status: Report['status'];
    readonly revision: number;
  } | null;
  /** Assessments by paragraph, without the paragraphs that are not assessed. */
  readonly assessments: Readonly<Record<string, Report['articles'][number]['status']>>;
  readonly gaps: readonly {
    readonly id: string;
    readonly missing: string;
    readonly articles: readonly string[];
    readonly owner: string | null;
    readonly due: string | null;
  }[];
  readonly deficiencies: Report['deficiencies'];
}

export interface SavedDraft {
  /** 0 if nothing is saved. */
  readonly revision: number;
  readonly answers: Answers;
  readonly standing: Standing | null;
}

const NOTHING_SAVED: SavedDraft = {
  revision: 0,
  answers: { human: {}, deficiencies: null },
  standing: null,
};

export async function readDraft(db: Db, bot_id: string, year: number): Promise<SavedDraft> {
  const row = await db
    .selectFrom('validation_drafts')
    .selectAll()
    .where('bot_id', '=', bot_id)
    .where('year', '=', year)
    .executeTakeFirst();
  if (row === undefined) return NOTHING_SAVED;
  return {
    revision: row.revision,
    answers: JSON.parse(row.answers) as Answers,
    standing: parseStanding(row),
  };
}

export function parseStanding({ standing }: Pick<ValidationDraftsTable, 'standing'>): Standing {
  return JSON.parse(standing) as Standing;
}

/**
 * Adds the values of a request, which `report` already contains, to the saved answers.
 *
 * @param by how the report names the author.
 */
export function addAnswers(
  { revision, answers }: SavedDraft,
  { human = {}, deficiencies }: Pick<Saving, 'human' | 'deficiencies'>,
  report: Report,
  { by, at }: Pick<Human, 'by' | 'at'>,
): Answers {
  const source = { by, at, revision: revision + 1 };
  const added = Object.entries(human).map(([place, value]) => [place, { value, ...source }]);
  return {
    human: { ...answers.human, ...(Object.fromEntries(added) as Answers['human']) },
    deficiencies:
      deficiencies === undefined ? answers.deficiencies : { items: report.deficiencies, ...source },
  };
}

export async function storeDraft(
  tx: Db,
  {
    bot_id,
    ...row
  }: Omit<ValidationDraftsTable, 'answers' | 'standing'> & {
    readonly answers: Answers;
    readonly standing: Standing;
  },
): Promise<void> {
  const values = {
    ...row,
    answers: JSON.stringify(row.answers),
    standing: JSON.stringify(row.standing),
  };
  await tx
    .insertInto('validation_drafts')
    .values({ bot_id, ...values })
    .onConflict((conflict) => conflict.columns(['bot_id', 'year']).doUpdateSet(values))
    .execute();
}

export function describeStanding(report: Report, frozen: Standing['frozen']): Standing {
  const { articles, generated_by, deficiencies } = report;
  return {
    frozen,
    assessments: Object.fromEntries(
      articles.flatMap(({ id, status }) => (status === 'not_assessed' ? [] : [[id, status]])),
    ),
    gaps: generated_by.gaps.map(({ owner, due, ...gap }) => ({
      ...gap,
      owner: owner?.value ?? null,
      due: due?.value ?? null,
    })),
    deficiencies,
  };
}

/** @throws ServiceError `conflict` with the reason `edited`, and a pointer to each value that somebody else changed. */
export function requireUnchanged(
  { revision: newest, answers }: SavedDraft,
  { revision, human = {}, deficiencies }: Saving,
): void {
  if (revision === undefined) return;
  const isNewer = (one: { readonly revision: number } | null | undefined): boolean =>
    (one?.revision ?? 0) > revision;
  const describe = ({ by, at }: Pick<Answer, 'by' | 'at'>): string =>
    `was changed by ${nameOf(by)} at ${at}`;
  const problems: Problem[] = Object.entries(human).flatMap(([place, value]) => {
    const saved = answers.human[place];
    if (saved === undefined || !isNewer(saved) || saved.value === value) return [];
    return [{ code: 'edited', message: describe(saved), pointer: toAnswerPointer(place) }];
  });
  const list = answers.deficiencies;
  if (deficiencies !== undefined && list !== null && isNewer(list)) {
    const items = list.items.map(({ id: _id, ...one }) => one);
    if (!isDeepStrictEqual(items, deficiencies)) {
      problems.push({ code: 'edited', message: describe(list), pointer: '/deficiencies' });
    }
  }
  if (problems.length === 0) return;
  throw new ServiceError(
    'conflict',
    `the answers have changed since revision ${revision} of the draft`,
    {
      reason: 'edited',
      problems,
      remedy: `Read the draft again, which has revision ${newest}, and save with that revision.`,
    },
  );
}

/** Leaves out the id in the name of an author. */
function nameOf(by: string | null): string {
  return by?.replace(/ \(.*\)$/, '') ?? 'somebody';
}
