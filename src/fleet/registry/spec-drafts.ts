/** Specs that are still being written. */
import { isDeepStrictEqual } from 'node:util';
import { diffDocuments, mergePatchBetween, type Change } from '../../bots/diff-documents.ts';
import { fieldsOf, type Fields } from '../../bots/fields.ts';
import { modelsIn, type Bundle } from '../../bots/bundle.ts';
import type { SentSpec } from '../../bots/hosted.ts';
import { specTemplates, type Template, type TemplateData } from '../../bots/templates.ts';
import type { Problem } from '../../base/errors.ts';
import type { Db } from '../../storage/tables.ts';
import { getBot, type BotRegistry } from './bots.ts';
import { checkSpec } from './new-version.ts';
import { getVersion, readBundle } from './versions.ts';

export { botJsonSchema } from '../../bots/json-schema.ts';

export interface DraftCheck {
  readonly problems: readonly Problem[];
  /** Undefined if there are problems. */
  readonly document: Fields | undefined;
  /** Differences from the current version of the bot. */
  readonly changes: readonly Change[];
  /** JSON merge patch (RFC 7396) from the document of the current version to the draft. */
  readonly patch: Fields | undefined;
  /** Whether the files differ from those of the current version. */
  readonly hasOtherFiles: boolean;
}

/**
 * Checks a spec, and compares it with the current version of a bot.
 * @param ref id or slug of the bot.
 * @throws ServiceError `payload_too_large`; `not_found` for the bot.
 */
export async function checkDraft(
  { storage: { read }, customCode }: BotRegistry,
  sent: SentSpec,
  ref: string | undefined,
): Promise<DraftCheck> {
  const current = ref === undefined ? undefined : await readCurrent(read, ref);
  const models = namedModels(current?.files, sent);
  const files = { ...models, ...sent.files };
  const { hosted, problems } = await checkSpec({ ...sent, files }, customCode);
  const document = hosted && fieldsOf(hosted.document);
  if (document === undefined || current === undefined) {
    return { problems, document, changes: [], patch: undefined, hasOtherFiles: false };
  }
  const before = current.document;
  return {
    problems,
    document,
    changes: diffDocuments(before, document),
    patch: mergePatchBetween(before, document),
    hasOtherFiles: !isDeepStrictEqual(current.files, hosted!.files ?? {}),
  };
}

async function readCurrent(read: Db, ref: string) {
  const { bot_id, current_version } = await getBot(read, ref);
  const version = await getVersion(read, bot_id, current_version);
  const files: Bundle = (await readBundle(read, bot_id, version)) ?? {};
  return { document: JSON.parse(version.document) as Fields, files };
}

/** Models of a version that a spec still names. */
function namedModels(files: Bundle = {}, sent: SentSpec): Bundle {
  const text = 'yaml' in sent ? sent.yaml : JSON.stringify(sent.document);
  const names = modelsIn(files).filter((name) => text.includes(name));
  return Object.fromEntries(names.map((name) => [name, files[name]!]));
}

/** Specs to start from, on a server with these datasets. */
export function draftTemplates(
  { customCode }: Pick<BotRegistry, 'customCode'>,
  datasets: readonly TemplateData[],
): readonly Template[] {
  return specTemplates(datasets, { allowsCode: customCode !== undefined });
}
