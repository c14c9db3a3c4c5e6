/** Which language model answers, as settings say, and what of it is loaded and when. */
import type { LanguageModel } from 'ai';
import { ServiceError } from '../errors.ts';
import type { Settings } from '../settings.ts';
import type { Answerer } from './answering.ts';
import { EMBEDDED } from './embedded.ts';

/** The environment variable with the key of the provider: keys come from nowhere else. */
export const CHAT_API_KEY = 'SERVICE_CHAT_API_KEY';

export interface ProviderSettings {
  readonly kind: 'openai_compatible' | 'anthropic';
  readonly model: string;
  /** Undefined for the provider's own. */
  readonly baseUrl: string | undefined;
  readonly apiKey: string | undefined;
}

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
  const apiKey = env[CHAT_API_KEY] || undefined;
  const lacks = (what: string, remedy: string): ServiceError =>
    new ServiceError('invalid_setting', `chat_provider is ${kind}, and ${what}`, { remedy });
  if (model === 'none') throw lacks('there is no chat_model', 'Name the model in chat_model.');
  if (kind === 'openai_compatible' && baseUrl === undefined) {
    throw lacks('there is no chat_base_url', 'Name its URL, such as http://127.0.0.1:11434/v1.');
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

type Fetch = typeof globalThis.fetch;

/**
 * The AI SDK with a model of the provider.
 * @throws ServiceError `conflict` with the package that is not installed.
 */
export async function loadModel(
  { kind, model, baseUrl, apiKey }: ProviderSettings,
  fetch: Fetch,
): Promise<{ readonly sdk: typeof import('ai'); readonly model: LanguageModel }> {
  const sdk = await installed('ai', () => import('ai'));
  if (kind === 'anthropic') {
    const name = '@ai-sdk/anthropic';
    const { createAnthropic } = await installed(name, () => import('@ai-sdk/anthropic'));
    const provider = createAnthropic({
      ...(baseUrl !== undefined && { baseURL: baseUrl }),
      apiKey: apiKey!,
      fetch,
    });
    return { sdk, model: provider(model) };
  }
  const name = '@ai-sdk/openai-compatible';
  const { createOpenAICompatible } = await installed(
    name,
    () => import('@ai-sdk/openai-compatible'),
  );
  const provider = createOpenAICompatible({
    name: 'chat',
    baseURL: baseUrl!,
    ...(apiKey !== undefined && { apiKey }),
    includeUsage: true,
    fetch,
  });
  return { sdk, model: provider(model) };
}

async function installed<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new ServiceError('conflict', `a language model needs the package ${name}`, {
      reason: 'not_installed',
      remedy: `Install it beside service-local with \`npm install ${name}\`.`,
      cause: error,
    });
  }
}
