/** Chooses the language model from the settings. Its packages are loaded with the first question. */
import { ServiceError } from '../base/errors.ts';
import type { Settings } from '../base/settings.ts';
import type { Answerer } from './answering.ts';
import { EMBEDDED } from './embedded.ts';
import type { ProviderSettings } from './ai-sdk.ts';

/** Environment variable with the provider's API key, which is never read from a file. */
export const CHAT_API_KEY = 'SERVICE_CHAT_API_KEY';

type Named = Pick<Settings, 'chat_provider' | 'chat_model' | 'chat_base_url'>;

/** @throws ServiceError `invalid_setting` if a required setting is missing or the key is malformed. */
export function answererOf(
  { chat_provider: kind, chat_model: model, chat_base_url: url }: Named,
  env: NodeJS.ProcessEnv,
): Answerer {
  if (kind === 'none') return EMBEDDED;
  const baseUrl = url === 'auto' ? undefined : url;
  // Secrets mounted as files usually end with a line feed.
  const apiKey = env[CHAT_API_KEY]?.trim() || undefined;
  const lacks = (what: string, remedy: string): ServiceError =>
    new ServiceError('invalid_setting', `chat_provider is ${kind}, but ${what}`, { remedy });
  if (model === 'none')
    throw lacks('chat_model is not set', 'Set chat_model to the name of the model.');
  if (kind === 'openai_compatible' && baseUrl === undefined) {
    throw lacks(
      'chat_base_url is not set',
      'Set it to the URL of the API, such as http://127.0.0.1:11434/v1.',
    );
  }
  if (apiKey !== undefined && !/^[!-~]+$/.test(apiKey)) {
    // HTTP headers cannot contain other characters, and the client's error would quote the key.
    const remedy = 'Set it to the key alone, which is one line of visible ASCII characters.';
    throw lacks(`${CHAT_API_KEY} has characters that no key has`, remedy);
  }
  if (kind === 'anthropic' && apiKey === undefined) {
    throw lacks(`${CHAT_API_KEY} is not set`, 'Set it in the environment of the server.');
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
