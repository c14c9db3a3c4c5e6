/** Parts that the pages of an assessment share: the draft, its frame, and saving a form. */
import { html } from 'hono/html';
import type { BotDetail } from '../../../api/bots.ts';
import type { saveValidationAnswers } from '../../../api/validation-drafts.ts';
import type {
  getValidationReport,
  listValidationReports,
  ValidationReport,
  ValidationReports,
} from '../../../api/validation-reports.ts';
import { ServiceError, type Problem } from '../../../base/errors.ts';
import type { RequestOf } from '../../../client/route.ts';
import { botFrame, readBot } from '../bot-frame.ts';
import { botPath, withQuery } from '../bot-parts.ts';
import type { Child, Html } from '../html.ts';
import { csrfField, type Content } from '../layout.ts';
import type { Form, Visit } from '../pages.ts';

export const ASSESSMENT_PATH = '/console/bots/:bot_ref/rts6';
export const REPORT_PATH = '/bots/{bot_ref}/risk/validation-report';

export interface DraftPage {
  readonly bot: BotDetail;
  readonly report: ValidationReport;
}

/** Reads the bot in the path and its draft of the year in the query. */
export async function readDraftPage(visit: Visit): Promise<DraftPage> {
  const bot = await readBot(visit);
  const year = visit.query('year');
  const report = await visit.call<typeof getValidationReport>('get', REPORT_PATH, {
    params: { bot_ref: bot.id },
    query: year === undefined ? {} : { year },
  });
  return { bot, report };
}

export type ReportVersion = ValidationReports['versions'][number];

export interface Frozen {
  /** The newest frozen version of the year; undefined if none is frozen. */
  readonly newest: ReportVersion | undefined;
  /** The report of that version. */
  readonly frozen: ValidationReport | undefined;
}

export async function readFrozen({ call }: Visit, { bot, report }: DraftPage): Promise<Frozen> {
  const params = { bot_ref: bot.id };
  const path = '/bots/{bot_ref}/risk/validation-reports';
  const { versions } = await call<typeof listValidationReports>('get', path, { params });
  const newest = versions.find((one) => one.year === report.period.year);
  const frozen =
    newest &&
    (await call<typeof getValidationReport>('get', REPORT_PATH, {
      params,
      query: { version: String(newest.version) },
    }));
  return { newest, frozen };
}

/** Path of a page of an assessment, which names the year. */
export function pathOf(
  {
    bot,
    report,
  }: { readonly bot: Pick<BotDetail, 'slug'>; readonly report: Pick<ValidationReport, 'period'> },
  page = '',
): string {
  const { year } = report.period;
  return withQuery(botPath(bot.slug, `rts6${page && `/${page}`}`), { year });
}

/** A page below the overview of an assessment. */
export function draftFrame(draft: DraftPage, title: string, body: Child): Html {
  return botFrame(
    draft.bot,
    'rts6',
    html`<div class="assessment">
      <p class="screen">
        <a href="${pathOf(draft)}">RTS 6 in ${draft.report.period.year}</a> / ${title}
      </p>
      <h2>${title}</h2>
      ${body}
    </div>`,
  );
}

type Saved = Pick<RequestOf<typeof saveValidationAnswers>['body'], 'human' | 'deficiencies'>;

/** Faults of a submitted form by pointer, with a message about all of them. */
export interface Faults {
  readonly error: ServiceError;
  readonly of: (pointer: string) => readonly Problem[];
  /** Revision that the form keeps; undefined for that of the draft. */
  readonly revision: string | undefined;
}

/** Path of another page of the assessment that a form belongs to. */
export function pathBeside({ param, query }: Visit, page: string): string {
  return withQuery(botPath(param('bot_ref'), `rts6/${page}`), { year: query('year') });
}

/** Saves answers. Returns the faults that the form shows at its fields, and throws other errors. */
export async function saveDraft(
  { call, param, query }: Visit,
  form: Form,
  saved: Saved,
): Promise<Faults | undefined> {
  const year = query('year');
  try {
    await call<typeof saveValidationAnswers>('patch', REPORT_PATH, {
      params: { bot_ref: param('bot_ref') },
      body: {
        ...(year !== undefined && { year: Number(year) }),
        revision: Number(form.get('revision')),
        ...saved,
      },
    });
    return undefined;
  } catch (error) {
    if (!(error instanceof ServiceError) || error.problems.length === 0) throw error;
    const { problems, reason } = error;
    return {
      error,
      of: (pointer) => problems.filter((one) => one.pointer === pointer),
      // Without the fault, the person has not seen what others have changed since.
      revision: reason === 'edited' ? undefined : form.get('revision'),
    };
  }
}

export function statusOf({ error }: Faults): NonNullable<Content['status']> {
  return error.status as NonNullable<Content['status']>;
}

/** Lists faults with links to their fields, which have the ids in `links`, by pointer. */
export function faultList(
  { error }: Faults,
  links: ReadonlyMap<string, { readonly id: string; readonly label: string }>,
): Html {
  const wasEdited = error.reason === 'edited';
  return html`<div class="message failure" role="alert" tabindex="-1" data-message>
    <p>
      ${
        wasEdited
          ? 'These answers have changed since you opened the form. What you typed is below and is not saved; save again to replace the other answers.'
          : 'Nothing is saved yet. Correct these fields.'
      }
    </p>
    <ul>
      ${error.problems.map(({ pointer = '', message }) => {
        const link = links.get(pointer);
        return html`<li>
          ${link === undefined ? pointer : html`<a href="#${link.id}">${link.label}</a>`}
          ${message}.
        </li>`;
      })}
    </ul>
  </div>`;
}

/** A form that saves to a draft. @param faults of the form, if it is shown again. */
export function draftForm(
  { session }: Pick<Visit, 'session'>,
  { report }: DraftPage,
  path: string,
  body: Child,
  faults: Faults | undefined,
): Html {
  return html`<form method="post" action="${path}" class="answers">
    ${csrfField(session)}
    <input type="hidden" name="revision" value="${faults?.revision ?? report.revision ?? 0}" />
    ${body}
  </form>`;
}

/** Returns the answer in a field, null for white space. Browsers send line ends as CRLF. */
export function answerOf(text: string): string | null {
  return text.replaceAll('\r\n', '\n').trim() || null;
}
