import type { createStepUp } from '../api/administrators.ts';
import type { Client } from '../client/client.ts';
import type { RequestOf } from '../client/route.ts';
import { ServiceError } from '../base/errors.ts';
import { ask } from './ask.ts';
import type { Context } from './verb.ts';

export const CODE_OPTION = {
  value: 'digits',
  description: 'authenticator code or recovery code, for use without a terminal',
} as const;

type Subject = Pick<RequestOf<typeof createStepUp>['body'], 'action' | 'target'> & {
  readonly code: string | undefined;
};

/**
 * Sends a request that may need a second factor: first without one, then, if the server requires it,
 * with the code in `--code` or from the person at the terminal.
 *
 * @param send gets the headers to send.
 * @throws ServiceError of the server; `usage` if a code is needed and there is no terminal.
 */
export async function sendWithStepUp<T>(
  context: Context,
  server: Client,
  { code, ...subject }: Subject,
  send: (headers: Readonly<Record<string, string>>) => Promise<T>,
): Promise<T> {
  try {
    return await send({});
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'step_up_required') throw error;
    if (code === undefined) context.message(error.message);
  }
  return send(await stepUp(context, server, { ...subject, code }));
}

/** Proves a second factor for one request. @returns the headers to send */
export async function stepUp(
  context: Context,
  server: Client,
  { code, ...subject }: Subject,
): Promise<{ readonly 'service-step-up': string }> {
  const { step_up_token } = await server.call<typeof createStepUp>('post', '/identity/step-ups', {
    body: {
      ...subject,
      code: code ?? (await ask(context, 'Code from your authenticator:', '--code')),
    },
  });
  return { 'service-step-up': step_up_token };
}
