/** Loads the AI SDK and its providers, which are optional peer dependencies. */
import type { LanguageModel } from 'ai';
import { ServiceError } from '../base/errors.ts';

export interface ProviderSettings {
  readonly kind: 'openai_compatible' | 'anthropic';
  readonly model: string;
  /** Undefined for the provider's default. */
  readonly baseUrl: string | undefined;
  readonly apiKey: string | undefined;
}

type Fetch = typeof globalThis.fetch;

/** @throws ServiceError `conflict` if a package is not installed, with the command that installs it. */
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
    throw new ServiceError(
      'conflict',
      `the language model needs the package ${name}, which is not installed`,
      {
        reason: 'not_installed',
        remedy: `Run \`npm install ${name}\` where service-local is installed, then restart the server.`,
        cause: error,
      },
    );
  }
}
