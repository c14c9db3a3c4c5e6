import { html } from 'hono/html';
import type { freezeValidationReport, ValidationReport } from '../../../api/validation-reports.ts';
import {
  ATTESTING_ROLES,
  ATTESTING_ROLE_NAMES,
  type AttestingRole,
} from '../../../base/validation-report-fields.ts';
import { describeReportStatus, listOpenItems } from '../../../base/validation-report-status.ts';
import type { RequestOf } from '../../../client/route.ts';
import type { Services } from '../../services.ts';
import { PASSKEYS, WEBAUTHN } from '../assets.ts';
import { withQuery } from '../bot-parts.ts';
import type { Html } from '../html.ts';
import { csrfField, type Content } from '../layout.ts';
import type { Form, GoTo, Pages, Visit } from '../pages.ts';
import { facts, table, time } from '../parts.ts';
import { sendWithStepUp, stepUpFields, type Confirmation } from '../step-up.ts';
import {
  ASSESSMENT_PATH,
  draftFrame,
  pathOf,
  readDraftPage,
  readFrozen,
  REPORT_PATH,
  type DraftPage,
} from './draft-page.ts';

const PATH = `${ASSESSMENT_PATH}/attest`;

/** Registers the page on which a person attests the newest frozen version in one role. */
export function addAttestPage(pages: Pages, services: Services): void {
  pages.get(PATH, (visit) => showAttest(visit));
  pages.post(PATH, (visit, form) => attest(visit, services, form), showAttest);
}

async function attest(visit: Visit, services: Services, form: Form): Promise<GoTo | Content> {
  const role = form.get('role') as AttestingRole;
  const content_hash = form.get('content_hash');
  const body: RequestOf<typeof freezeValidationReport>['body'] = {
    attest: role,
    version: Number(form.get('version')),
    content_hash,
  };
  const bot_ref = visit.param('bot_ref');
  const outcome = await sendWithStepUp(
    visit,
    services,
    confirmationOf(content_hash),
    form,
    (headers) =>
      visit.call<typeof freezeValidationReport>('post', REPORT_PATH, {
        params: { bot_ref },
        headers,
        body,
      }),
  );
  if ('ask' in outcome) return outcome.ask;
  const report = outcome.sent;
  const status = describeReportStatus(report.status, listOpenItems(report));
  return {
    goTo: pathOf({ bot: { slug: bot_ref }, report }),
    message: `You have attested as ${ATTESTING_ROLE_NAMES[role]}. Version ${report.number!.version} is ${status}.`,
  };
}

function confirmationOf(content_hash: string): Confirmation {
  return {
    subject: {
      action: 'bots.validation_report.attest',
      target: `validation_report:${content_hash}`,
    },
    title: 'Attest',
    what: 'Attesting needs your second factor.',
    fields: ['role', 'version', 'content_hash'],
  };
}

async function showAttest(visit: Visit, typed?: Form): Promise<Content> {
  const draft = await readDraftPage(visit);
  const { frozen } = await readFrozen(visit, draft);
  return {
    title: draft.bot.name,
    scripts: [WEBAUTHN, PASSKEYS],
    body: draftFrame(
      draft,
      'Attest',
      frozen === undefined
        ? html`<p>
            No version of the report for ${draft.report.period.year} is frozen yet.
            <a href="${pathOf(draft)}">Freeze the report</a> first.
          </p>`
        : html`${attested(draft, frozen)} ${attestForm(visit, draft, frozen, typed)}`,
    ),
  };
}

/** The version to attest, and who has attested it. */
function attested({ bot, report: draft }: DraftPage, report: ValidationReport): Html {
  const { number, content_hash, attestations } = report;
  const { version } = number!;
  const path = withQuery(`/bots/${bot.slug}/risk/validation-report`, { version, format: 'html' });
  const open = listOpenItems(report);
  return html`${
    content_hash !== draft.content_hash &&
    html`<p class="note">The answers have changed since version ${version} was frozen.</p>`
  }
  ${facts(
    ['Version', html`<a href="${path}">${version}</a>`],
    ['Content hash', html`<code>${content_hash}</code>`],
    ['Open', open.join(', ') || 'nothing'],
  )}
  ${table<AttestingRole>(
    'Attestations',
    [
      { title: 'Role', isHeader: true, cell: (role) => ATTESTING_ROLE_NAMES[role] },
      { title: 'Attested by', cell: (role) => attestations[role]?.name ?? 'no one' },
      {
        title: 'At',
        cell: (role) => (attestations[role] === null ? '' : time(attestations[role].at)),
      },
    ],
    ATTESTING_ROLES,
  )}`;
}

function attestForm(
  { session }: Visit,
  draft: DraftPage,
  { number, content_hash, attestations }: ValidationReport,
  typed: Form | undefined,
): Html {
  const { administrator_id } = session.caller;
  const open = ATTESTING_ROLES.filter((role) => attestations[role] === null);
  const own = ATTESTING_ROLES.find(
    (role) => attestations[role]?.administrator_id === administrator_id,
  );
  if (own !== undefined) {
    return html`<p>
      You have attested as ${ATTESTING_ROLE_NAMES[own]}. Each role needs a different person.
    </p>`;
  }
  if (open.length === 0) return html`<p>All roles have attested.</p>`;
  return html`<form method="post" action="${pathOf(draft, 'attest')}">
    ${csrfField(session)}
    <input type="hidden" name="version" value="${number!.version}" />
    <input type="hidden" name="content_hash" value="${content_hash}" />
    <div class="field">
      <label for="role">Role in which you attest</label>
      <select id="role" name="role" required>
        <option value="">choose</option>
        ${open.map(
          (role) =>
            html`<option value="${role}" ${role === typed?.get('role') && html`selected`}>
              ${ATTESTING_ROLE_NAMES[role]}
            </option>`,
        )}
      </select>
    </div>
    ${stepUpFields(confirmationOf(content_hash).subject)}
    <div class="actions"><button class="main">Attest</button></div>
  </form>`;
}
