import { ServiceError } from '../../base/errors.ts';
import { endToken } from '../end-token.ts';
import { defineVerb } from '../verb.ts';

export const verb = defineVerb({
  summary: 'log out, and end the token of the login',
  description:
    'Deletes the token of the login from this machine, and ends it on the server that issued it. If the server cannot end it, the token is still deleted from this machine, and the command fails.',
  examples: ['logout'],
  async run(context) {
    const { readToken, removeToken } = await import('../../client/token.ts');
    const { message, settings, io } = context;
    const stored = await readToken(settings.home);
    if (io.env['SERVICE_LOCAL_TOKEN'])
      message('SERVICE_LOCAL_TOKEN is still set, so commands continue to use its token');
    if (stored === undefined) {
      return {
        data: { server: null, token_id: null },
        show: (out) => out.line('You were not logged in.'),
      };
    }
    await removeToken(settings.home);
    const { origin, token_id } = stored;
    try {
      await endToken(stored, context);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      throw new ServiceError(
        error.code,
        `the token was deleted from this machine, but not ended on the server: ${error.message}`,
        {
          remedy: `The token is valid until it expires. End it with \`service-local identity tokens revoke ${token_id} --url ${origin}\`.`,
          cause: error,
        },
      );
    }
    return {
      data: { server: origin, token_id },
      show: (out) => out.line(`You are logged out of ${origin}.`),
    };
  },
});
