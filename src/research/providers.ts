/** Which language model answers, as settings say; it is loaded with the first question. */
import { ServiceError } from '../base/errors.ts';
import type { Settings } from '../base/settings.ts';
import type { Answerer } from './answering.ts';
import { EMBEDDED } from './embedded.ts';
import type { ProviderSettings } from './sdk.ts';

/** The environment variable with the key of the provider: keys come from nowhere else. */
export const CHAT_API_KEY = 'SERVICE_CHAT_API_KEY';

type Named = Pick<Settings, 'chat_provider' | 'chat_model' | 'chat_base_url'>;

/**
 * Who answers.
 * @throws ServiceError `invalid_setting` where the settings do not fit together.
 */
export function answererOf(
  { chat_provider: kind, chat_model: model, chat_base_url: url }: Named,
  env: NodeJS.ProcessEnv,
): Answerer {
  if (kind === 'none') return EMBEDDED;
  const baseUrl = url === 'auto' ? undefined : url;
  // As files with secrets end in a line feed.
  const apiKey = env[CHAT_API_KEY]?.trim() || undefined;
  const lacks = (what: string, remedy: string): ServiceError =>
    new ServiceError('invalid_setting', `chat_provider is ${kind}, and ${what}`, { remedy });
  if (model === 'none') throw lacks('there is no chat_model', 'Name the model in chat_model.');
  if (kind === 'openai_compatible' && baseUrl === undefined) {
    throw lacks('there is no chat_base_url', 'Name its URL, such as http://127.0.0.1:11434/v1.');
  }
  if (apiKey !== undefined && !/^[!-~]+$/.test(apiKey)) {
    // No header can have it, and what refuses it would quote it.
    const remedy = 'Set it to the key alone, which is one line of visible ASCII characters.';
    throw lacks(`${CHAT_API_KEY} is no key`, remedy);
  }
  if (kind === 'anthropic' && apiKey === undefined) {
    throw lacks(`there is no ${CHAT_API_KEY}`, 'Set it in the environment of the server.');
  }
  const settings: ProviderSettings = { kind, model, baseUrl, apiKey };
  return {
    provider: kind,
    model,
    is_language_model: true,
    async answer(question) {
      const { answerWithModel } = await import('./language-model.ts');
      return answerWithModel(settings, question);
    },
  };
}
