import { formatInstant } from '../api/http.ts';
import * as drafts from '../api/validation-drafts.ts';
import * as api from '../api/validation-reports.ts';
import { draftReport, saveAnswers, type DraftedReport } from '../compliance/report/draft.ts';
import { composeFirmReport } from '../compliance/report/firm.ts';
import {
  attestReport,
  freezeReport,
  getFrozenReport,
  listFrozenVersions,
  type FrozenReport,
} from '../compliance/report/freeze.ts';
import { renderReportPage } from '../compliance/report/render-validation-report.ts';
import { showHidden } from '../base/hidden-characters.ts';
import { createOnce } from './idempotency.ts';
import type { App, Services } from './services.ts';

export function addValidationReports(app: App, { tasks }: Services): void {
  app.openapi(api.getValidationReport, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const { year, version, format } = c.req.valid('query');
    const read =
      version === undefined
        ? await draftReport(tasks, bot_ref, year)
        : await getFrozenReport(tasks.storage.read, bot_ref, version);
    if (format === 'json') return c.json(serializeReport(read), 200);
    const { source, policy } = renderReportPage(read.report, 'hash' in read ? read.hash : null);
    const { period, scope, number } = read.report;
    const name = [scope.bot_ref, period.year, number?.version ?? 'draft'].join('-');
    c.header('Content-Security-Policy', policy);
    c.header('Content-Disposition', `inline; filename="validation-report-${name}.html"`);
    return c.html(showHidden(source), 200);
  });
  app.openapi(drafts.saveValidationAnswers, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const { administrator_id } = c.get('caller')!;
    const saved = await saveAnswers(tasks, administrator_id, bot_ref, c.req.valid('json'));
    return c.json(serializeReport(saved), 200);
  });
  app.openapi(drafts.getFirmReport, async (c) =>
    c.json(await composeFirmReport(tasks, c.req.valid('query').year), 200),
  );
  app.openapi(api.listValidationReports, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const found = await listFrozenVersions(tasks.storage.read, bot_ref);
    const versions = found.map((one) => ({
      ...one,
      signed_with_open: [...one.signed_with_open],
      frozen_at: formatInstant(one.frozen_at),
    }));
    return c.json({ versions }, 200);
  });
  app.openapi(api.freezeValidationReport, async (c) => {
    const { bot_ref } = c.req.valid('param');
    const request = c.req.valid('json');
    const stepUp = c.req.valid('header')['service-step-up'];
    const { administrator_id } = c.get('caller')!;
    const answer = await createOnce(
      c,
      tasks,
      (service) =>
        'attest' in request
          ? attestReport(service, administrator_id, bot_ref, request, stepUp)
          : freezeReport(service, administrator_id, bot_ref, request),
      serializeReport,
    );
    return c.json(answer, 201);
  });
}

/** Returns the report itself, since it is already plain JSON; the types differ only in `readonly`. */
function serializeReport(read: DraftedReport | FrozenReport): api.ValidationReport {
  const { report, ...rest } = read;
  return { hash: null, ...rest, ...report } as unknown as api.ValidationReport;
}
