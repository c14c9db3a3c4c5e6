/** A spec that is typed in the console, with its code, and its way to the API. */
import { stringify } from 'yaml';
import type { BotValidation, validateBot } from '../../api/bot-specs.ts';
import type { BotDetail, BotInput, getBotVersion, getBotVersionFiles } from '../../api/bots.ts';
import type { Form, Visit } from './pages.ts';

export interface Draft {
  /** The spec as YAML. */
  readonly yaml: string;
  /** Code by path. Models are not part of a draft. */
  readonly code: Readonly<Record<string, string>>;
}

/** Reads the fields that `draftFields` renders. Files without a name or text are left out. */
export function readDraft(form: Form): Draft {
  const [names, texts] = [form.all('file'), form.all('code')];
  const files = names.map((name, i) => [name.trim(), withLineFeeds(texts[i] ?? '')] as const);
  const code = files.filter(([name, text]) => name !== '' && text.trim() !== '');
  return { yaml: withLineFeeds(form.get('spec')), code: Object.fromEntries(code) };
}

/** Browsers send line ends of text fields as CRLF. */
function withLineFeeds(text: string): string {
  return text.replaceAll('\r\n', '\n');
}

/** A version of a bot as a draft, and its models in base64. */
export async function readVersion(
  { call }: Pick<Visit, 'call'>,
  { id, current_version, document }: BotDetail,
  version = current_version,
): Promise<{ readonly draft: Draft; readonly models: Draft['code'] }> {
  const params = { bot_ref: id, version: String(version) };
  const path = '/bots/{bot_ref}/versions/{version}';
  const [spec, { files }] = await Promise.all([
    version === current_version
      ? document
      : call<typeof getBotVersion>('get', path, { params }).then((found) => found.document),
    call<typeof getBotVersionFiles>('get', `${path}/files`, { params }),
  ]);
  const isModel = ([name]: readonly [string, string]): boolean => name.endsWith('.onnx');
  const all = Object.entries(files);
  return {
    draft: {
      yaml: specText(spec),
      code: Object.fromEntries(all.filter((one) => !isModel(one))),
    },
    models: Object.fromEntries(all.filter(isModel)),
  };
}

export function specText(document: Readonly<Record<string, unknown>>): string {
  return stringify(document, { lineWidth: 0 });
}

/**
 * The body of requests that check, create or update a bot.
 * @param models of an earlier version; those that the spec no longer names are left out.
 */
export function toInput({ yaml, code }: Draft, models: Draft['code'] = {}): BotInput {
  const named = Object.entries(models).filter(([name]) => yaml.includes(name));
  const files = { ...Object.fromEntries(named), ...code };
  return Object.keys(files).length === 0 ? { yaml } : { yaml, files };
}

export function validateDraft(
  { call }: Pick<Visit, 'call'>,
  body: BotInput,
  bot?: string,
): Promise<BotValidation> {
  return call<typeof validateBot>('post', '/bots/validate', {
    query: bot === undefined ? {} : { bot },
    body,
  });
}
