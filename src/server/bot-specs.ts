import * as api from '../api/bot-specs.ts';
import type { Problem } from '../base/errors.ts';
import { botJsonSchema, checkDraft, draftTemplates } from '../fleet/registry/spec-drafts.ts';
import { listDatasets } from '../research/datasets.ts';
import type { App, Services } from './services.ts';

export function addBotSpecs(app: App, { identity, tasks }: Services): void {
  const registry = { ...identity, customCode: tasks.customCode };

  app.openapi(api.validateBot, async (c) => {
    const sent = c.req.valid('json');
    const checked = await checkDraft(registry, sent, c.req.valid('query').bot);
    const { problems, document = null, changes, patch = null, hasOtherFiles } = checked;
    const answer = {
      valid: problems.length === 0,
      problems: problems.map((one) => serializeProblem(one, 'yaml' in sent)),
      document,
      patch,
      files_differ: hasOtherFiles,
      changes: [...changes],
    };
    return c.json(answer, 200);
  });
  app.openapi(api.getBotSchema, (c) => c.json(botJsonSchema(), 200));
  app.openapi(api.listBotTemplates, async (c) => {
    const datasets = await listDatasets(tasks.catalogueDir);
    return c.json({ items: [...draftTemplates(registry, datasets)] }, 200);
  });
}

/** @param isText whether the lines of the problem are those of the caller's text. */
function serializeProblem(
  { code, pointer = '', message, suggestion, line, column }: Problem,
  isText: boolean,
): api.BotValidation['problems'][number] {
  return {
    code,
    pointer,
    detail: message,
    ...(suggestion !== undefined && { suggestion }),
    ...(isText && line !== undefined && { line }),
    ...(isText && column !== undefined && { column }),
  };
}
